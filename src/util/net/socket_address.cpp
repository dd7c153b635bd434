// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/socket_address.hpp"

#include <cstddef>
#include <cstring>

#include <linux/vm_sockets.h>
#include <netdb.h>
#include <sys/un.h>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice {

namespace {

std::optional<SocketAddress> unix_address(const std::string &name, bool abstract)
{
    if (name.size() > unix_name_bytes_max)
        return std::nullopt;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(), name.size());
    SocketAddress result;
    // an abstract name is as long as the size says; a path ends with its NUL
    result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
    std::memcpy(&result.storage, &address, result.size);
    return result;
}

std::string inet_text(const SocketAddress &address)
{
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "?";
    return address.family() == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

std::string unix_text(const SocketAddress &address)
{
    sockaddr_un at{};
    std::memcpy(&at, &address.storage, address.size);
    size_t bytes = address.size - offsetof(sockaddr_un, sun_path);
    if (bytes == 0)
        return "unix:"; // not bound to any name, as clients mostly are
    if (at.sun_path[0] == '\0')
        return "unix:@" + printable({at.sun_path + 1, bytes - 1});
    return "unix:" + printable({at.sun_path, strnlen(at.sun_path, bytes)});
}

} // namespace

std::optional<SocketAddress> to_socket_address(const UnixPath &address)
{
    return unix_address(address.path, false);
}

std::optional<SocketAddress> to_socket_address(const UnixAbstract &address)
{
    return unix_address(address.name, true);
}

SocketAddress to_socket_address(const VsockAddress &address)
{
    sockaddr_vm at{};
    at.svm_family = AF_VSOCK;
    at.svm_cid = address.cid;
    at.svm_port = address.port;
    SocketAddress result;
    result.size = sizeof at;
    std::memcpy(&result.storage, &at, sizeof at);
    return result;
}

std::string to_string(const SocketAddress &address)
{
    if (address.size < sizeof(sa_family_t))
        return "?";
    switch (address.family()) {
    case AF_UNIX:
        return unix_text(address);
    case AF_INET:
    case AF_INET6:
        return inet_text(address);
    case AF_VSOCK: {
        sockaddr_vm at{};
        std::memcpy(&at, &address.storage, sizeof at);
        return to_string(Address(VsockAddress{at.svm_cid, at.svm_port}));
    }
    default:
        return "?";
    }
}

SocketAddress local_address(int fd)
{
    SocketAddress address;
    address.size = sizeof address.storage;
    if (getsockname(fd, address.get(), &address.size) != 0)
        return {};
    return address;
}

SocketAddress peer_address(int fd)
{
    SocketAddress address;
    address.size = sizeof address.storage;
    if (getpeername(fd, address.get(), &address.size) != 0)
        return {};
    return address;
}

Error name_too_long(const Address &address, size_t bytes)
{
    return {ENAMETOOLONG, format(_("bad address '{}': the name of a unix socket has at most {} bytes, this one has {}; "
                                   "use a shorter path, or a symbolic link to its folder"),
                                 printable(to_string(address)), unix_name_bytes_max, bytes)};
}

} // namespace sluice
