// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/net/listen.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/base/printable.hpp"
#include "util/net/format.hpp"
#include "util/net/resolve.hpp"

namespace sluice {

namespace {

Error listen_error(const Address &address, int code, const char *advice = nullptr)
{
    std::string at = printable(to_string(address));
    if (advice == nullptr && code == EADDRINUSE)
        advice = _("another process listens there; stop it, or choose another address");
    if (advice == nullptr && code == EACCES)
        advice = _("it takes write permission on the folder, or for ports below 1024 a privilege");
    if (advice == nullptr && code == EADDRNOTAVAIL)
        advice = _("this machine does not have that address");
    if (advice == nullptr && code == ENOENT)
        advice = _("make its folder first");
    if (advice == nullptr)
        return {code, format(_("cannot listen on {}: {}"), at, std::strerror(code))};
    return {code, format(_("cannot listen on {}: {}: {}"), at, std::strerror(code), advice)};
}

// Does anybody listen on this unix socket? An errno where that is not to be found out.
int knock(const SocketAddress &at)
{
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd)
        return errno;
    if (connect(fd.get(), at.get(), at.size) == 0 || errno == EAGAIN || errno == EPROTOTYPE)
        return 0;
    return errno;
}

} // namespace

Result<Listener> Listener::adopt(UniqueFd fd)
{
    int listening = 0;
    socklen_t size = sizeof listening;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0)
        return fail_errno(errno, format(_("descriptor {} cannot be listened on"), fd.get()));
    if (listening == 0)
        return fail(EINVAL, format(_("descriptor {} is a socket that does not listen"), fd.get()));
    int flags = fcntl(fd.get(), F_GETFL);
    if (flags < 0 || fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0)
        return fail_errno(errno, "fcntl");
    Listener listener;
    listener.fds_.push_back(std::move(fd));
    return listener;
}

Listener::~Listener()
{
    struct stat found;
    if (!path_.empty() && lstat(path_.c_str(), &found) == 0 && Inode{found.st_dev, found.st_ino} == inode_)
        unlink(path_.c_str());
}

Result<Listener> Listener::share() const
{
    Listener copy;
    for (const UniqueFd &fd : fds_) {
        UniqueFd other(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
        if (!other)
            return fail_errno(errno, "dup");
        copy.fds_.push_back(std::move(other));
    }
    return copy;
}

std::vector<SocketAddress> Listener::addresses() const
{
    std::vector<SocketAddress> list;
    for (const UniqueFd &fd : fds_)
        list.push_back(local_address(fd.get()));
    return list;
}

Result<UniqueFd> Listener::bind_and_listen(const Address &address, const SocketAddress &at, bool ipv6_only,
                                           const ListenOptions &options)
{
    UniqueFd fd(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd)
        return tl::unexpected<Error>(listen_error(address, errno));
    int on = 1;
    if (at.family() == AF_INET || at.family() == AF_INET6) {
        setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // accepted ones inherit it
    }
    if (at.family() == AF_INET6 && ipv6_only)
        setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    // the socket's own mode is the most that its path will have: no moment of being open to all
    if (at.family() == AF_UNIX && options.mode)
        fchmod(fd.get(), *options.mode);
    if (bind(fd.get(), at.get(), at.size) != 0 || listen(fd.get(), options.backlog) != 0)
        return tl::unexpected<Error>(listen_error(address, errno));
    return fd;
}

Result<void> Listener::listen_on_path(const UnixPath &address, const ListenOptions &options)
{
    auto at = to_socket_address(address);
    if (!at)
        return tl::unexpected<Error>(name_too_long(address, address.path.size()));
    struct stat found;
    if (lstat(address.path.c_str(), &found) == 0) {
        if (!S_ISSOCK(found.st_mode))
            return tl::unexpected<Error>(
                listen_error(address, ENOTSOCK, _("something else has this path; move it away, or choose another")));
        int code = knock(*at);
        if (code != ECONNREFUSED)
            return tl::unexpected<Error>(listen_error(address, code == 0 ? EADDRINUSE : code));
        if (unlink(address.path.c_str()) != 0 && errno != ENOENT)
            return tl::unexpected<Error>(listen_error(address, errno));
    }
    auto fd = bind_and_listen(address, *at, false, options);
    if (!fd)
        return tl::unexpected<Error>(fd.error());
    fds_.push_back(std::move(*fd));
    if (lstat(address.path.c_str(), &found) != 0)
        return tl::unexpected<Error>(listen_error(address, errno));
    path_ = address.path;
    inode_ = {found.st_dev, found.st_ino};
    return set_ownership(address, options);
}

Result<void> Listener::set_ownership(const Address &address, const ListenOptions &options) const
{
    struct stat found;
    if (path_.empty() || lstat(path_.c_str(), &found) != 0)
        return {};
    // the umask may have taken bits away that were asked for
    if (options.mode && (found.st_mode & 07777) != *options.mode && chmod(path_.c_str(), *options.mode) != 0)
        return tl::unexpected<Error>(listen_error(address, errno));
    constexpr auto unchanged = static_cast<uid_t>(-1);
    if ((options.owner || options.group) &&
        lchown(path_.c_str(), options.owner.value_or(unchanged), options.group.value_or(unchanged)) != 0)
        return tl::unexpected<Error>(
            listen_error(address, errno, _("to give a socket to another user or group takes a privilege")));
    return {};
}

Result<Listener> listen_on(const Address &address, const ListenOptions &options)
{
    Listener listener;
    if (const auto *path = std::get_if<UnixPath>(&address)) {
        auto done = listener.listen_on_path(*path, options);
        if (!done)
            return tl::unexpected<Error>(done.error());
        return listener;
    }
    std::vector<SocketAddress> list;
    if (const auto *abstract = std::get_if<UnixAbstract>(&address)) {
        auto at = to_socket_address(*abstract);
        if (!at)
            return tl::unexpected<Error>(name_too_long(address, abstract->name.size()));
        list.push_back(*at);
    } else if (const auto *tcp = std::get_if<TcpAddress>(&address)) {
        auto found = resolve_to_listen(*tcp);
        if (!found)
            return fail(found.error().code,
                        format(_("cannot listen on {}: {}"), printable(to_string(address)), found.error().message));
        list = std::move(*found);
    } else {
        list.push_back(to_socket_address(std::get<VsockAddress>(address)));
    }
    for (const SocketAddress &at : list) {
        auto fd = Listener::bind_and_listen(address, at, list.size() > 1, options);
        if (!fd)
            return tl::unexpected<Error>(fd.error());
        listener.fds_.push_back(std::move(*fd));
    }
    return listener;
}

Acceptor::Acceptor(Loop loop, Listener listener, Callbacks callbacks, Limits limits)
    : loop_(std::move(loop)), listener_(std::move(listener)),
      owner_(std::make_shared<Owner>(Owner{std::move(callbacks)})), limits_(limits), next_pause_(limits.pause)
{
    for (const UniqueFd &fd : listener_.fds()) {
        watches_.push_back(
            loop_.watch(fd.get(), SLUICE_EVENT_READABLE, [this, number = fd.get()](int) { accept_batch(number); }));
    }
    resume_ = loop_.every(std::chrono::milliseconds{-1}, [this] { resource_freed(); });
}

Acceptor::~Acceptor()
{
    owner_->gone = true;
}

void Acceptor::accept_batch(int fd)
{
    std::shared_ptr<Owner> owner = owner_;
    bool more = true;
    for (int i = 0; more && !owner->gone && i < limits_.batch && !paused_ && !held_; ++i)
        more = accept_one(fd);
}

// True if there may be more to accept. The acceptor may be gone afterwards.
bool Acceptor::accept_one(int fd)
{
    if (owner_->callbacks.reserve && !owner_->callbacks.reserve()) {
        hold();
        return false;
    }
    SocketAddress peer;
    peer.size = sizeof peer.storage;
    UniqueFd connection(accept4(fd, peer.get(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
        ++counters_.accepted;
        next_pause_ = limits_.pause;
        owner_->callbacks.accepted(std::move(connection), peer);
        return true;
    }
    int code = errno;
    if (owner_->callbacks.unreserve)
        owner_->callbacks.unreserve();
    switch (code) {
    case EAGAIN:
        queue_is_empty();
        return false;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    // these cannot get better by themselves, but must not make a spin either
    case EBADF:
    case EINVAL:
    case ENOTSOCK:
        pause(code);
        return false;
    default:
        // an error of this one client's connection, which is gone, accept(2)
        ++counters_.vanished;
        return true;
    }
}

void Acceptor::pause(int code)
{
    ++counters_.failed;
    paused_ = true;
    arm();
    resume_.update(next_pause_);
    next_pause_ = std::min(next_pause_ * 2, limits_.pause_max);
    if (want_)
        return;
    want_ = true;
    ++counters_.pauses;
    if (owner_->callbacks.paused)
        owner_->callbacks.paused(Error::from_errno(code, _("accepting connections pauses")));
}

void Acceptor::queue_is_empty()
{
    if (!want_)
        return;
    want_ = false;
    if (owner_->callbacks.recovered)
        owner_->callbacks.recovered();
}

void Acceptor::resource_freed()
{
    if (!paused_)
        return;
    paused_ = false;
    resume_.park();
    arm();
}

void Acceptor::hold()
{
    held_ = true;
    arm();
}

void Acceptor::release()
{
    held_ = false;
    arm();
}

// What is watched follows from the two reasons not to, here alone.
void Acceptor::arm()
{
    for (Handle &watch : watches_)
        watch.update(paused_ || held_ ? 0 : SLUICE_EVENT_READABLE);
}

} // namespace sluice
