// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/report.hpp"

#include <string>

#include <unistd.h>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

bool write_all(int fd, std::string_view text)
{
    while (!text.empty()) {
        const ssize_t count = write(fd, text.data(), text.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        text.remove_prefix(static_cast<size_t>(count));
    }
    return true;
}

} // namespace

void complain(std::string_view message)
{
    // nothing useful can be done about a stderr that fails
    write_all(STDERR_FILENO, "sluice: " + printable(message) + "\n");
}

int fail_with(const Error &error)
{
    complain(error.message);
    switch (error.code) {
    case EINVAL:
    case ENAMETOOLONG:
        return EX_USAGE;
    case ENOENT:
    case ENOTDIR:
    case ENOTSOCK:
        return EX_NOINPUT;
    case EACCES:
    case EPERM:
        return EX_NOPERM;
    case EPROTO:
        return EX_PROTOCOL;
    case EIO:
    case ENOSPC:
    case EPIPE:
        return EX_IOERR;
    default:
        return EX_UNAVAILABLE;
    }
}

int print(std::string_view text)
{
    if (write_all(STDOUT_FILENO, text))
        return EX_OK;
    complain(format(_("cannot write to standard output: {}"), std::strerror(errno)));
    return EX_IOERR;
}

} // namespace sluice::cli
