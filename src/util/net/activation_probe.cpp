// SPDX-License-Identifier: LGPL-2.1-or-later
// For activation_test: takes what it is passed and says on stdout what it got.

#include <cstdio>
#include <cstdlib>

#include <fcntl.h>

#include "util/net/activation.hpp"
#include "util/net/socket_address.hpp"

int main()
{
    auto passed = sluice::take_passed_sockets();
    if (!passed) {
        printf("error %d %s\n", passed.error().code, passed.error().message.c_str());
    } else {
        for (const sluice::PassedFd &each : *passed)
            printf("%d %s %s%s\n", each.fd.get(), each.name.c_str(),
                   to_string(sluice::local_address(each.fd.get())).c_str(),
                   (fcntl(each.fd.get(), F_GETFD) & FD_CLOEXEC) != 0 ? "" : " not close-on-exec");
    }
    for (const char *name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
        if (getenv(name))
            printf("%s is still set\n", name);
    }
    return 0;
}
