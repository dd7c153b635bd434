// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/activation.hpp"

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"
#include "util/net/socket_address.hpp"

namespace sluice {

namespace {

tl::unexpected<Error> bad(int code, const PassedFd &passed, const std::string &fault)
{
    return fail(code, format(_("passed descriptor {} ('{}'): {}"), passed.fd.get(), printable(passed.name), fault));
}

int socket_option(int fd, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

Result<void> check(const PassedFd &passed)
{
    int fd = passed.fd.get();
    struct stat status;
    if (fstat(fd, &status) != 0)
        return bad(errno, passed, _("it is not open"));
    if (S_ISFIFO(status.st_mode))
        return bad(ENOTSOCK, passed, _("it is a pipe, not a socket; write ListenStream= in the socket unit"));
    if (!S_ISSOCK(status.st_mode))
        return bad(ENOTSOCK, passed, _("it is no socket; write ListenStream= in the socket unit"));
    int domain = socket_option(fd, SO_DOMAIN);
    if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6 && domain != AF_VSOCK)
        return bad(EPROTOTYPE, passed, _("it is no unix, TCP or vsock socket; write ListenStream= in the socket unit"));
    if (socket_option(fd, SO_TYPE) != SOCK_STREAM)
        return bad(EPROTOTYPE, passed, _("it is no stream socket; write ListenStream= in the socket unit"));
    if (socket_option(fd, SO_ACCEPTCONN) == 1)
        return {};
    if (peer_address(fd).size != 0)
        return bad(EINVAL, passed, _("it is a connection, not a listening socket; write Accept=no in the socket unit"));
    return bad(EINVAL, passed, _("it does not listen; whoever passes it must call listen() first"));
}

std::string variable(const char *name)
{
    const char *value = getenv(name);
    return value ? printable(value) : "";
}

} // namespace

Result<std::vector<PassedFd>> take_passed_sockets()
{
    std::string count_text = variable("LISTEN_FDS"), names_text = variable("LISTEN_FDNAMES");
    char **names = nullptr;
    int count = sd_listen_fds_with_names(1, &names);
    if (count == -EBADF)
        return fail(EBADF, format(_("LISTEN_FDS={} sockets were to be passed, from descriptor {} on, but not all of "
                                    "them are open"),
                                  count_text, SD_LISTEN_FDS_START));
    if (count < 0)
        return fail(-count, format(_("cannot take the passed sockets (LISTEN_FDS={}, LISTEN_FDNAMES={}): {}"),
                                   count_text, names_text, std::strerror(-count)));

    std::vector<PassedFd> passed;
    for (int i = 0; i < count; ++i) {
        passed.push_back({UniqueFd(SD_LISTEN_FDS_START + i), names[i]});
        free(names[i]);
    }
    free(names);
    for (const PassedFd &each : passed) {
        if (auto checked = check(each); !checked)
            return tl::unexpected(checked.error());
    }
    return passed;
}

} // namespace sluice
