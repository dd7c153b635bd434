// SPDX-License-Identifier: LGPL-2.1-or-later

#include "proxy_backend.hpp"

#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::bench {

bool send_all(int fd, const void *data, size_t size)
{
    const char *at = static_cast<const char *>(data);
    while (size > 0) {
        const ssize_t done = send(fd, at, size, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        size -= size_t(done);
    }
    return true;
}

bool receive_all(int fd, void *data, size_t size)
{
    char *at = static_cast<char *>(data);
    while (size > 0) {
        const ssize_t done = recv(fd, at, size, 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        size -= size_t(done);
    }
    return true;
}

bool send_bulk(int fd, uint64_t bytes)
{
    static const std::vector<char> block(bulk_block, 'x');
    for (; bytes > 0; bytes -= std::min<uint64_t>(bytes, bulk_block))
        if (!send_all(fd, block.data(), size_t(std::min<uint64_t>(bytes, bulk_block))))
            return false;
    return true;
}

bool receive_bulk(int fd, uint64_t bytes)
{
    std::vector<char> block(bulk_block);
    while (bytes > 0) {
        const ssize_t done = recv(fd, block.data(), size_t(std::min<uint64_t>(bytes, bulk_block)), 0);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes -= uint64_t(done);
    }
    return true;
}

void yield_to_others()
{
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none); // 0: this thread alone
}

bool exchange(int fd, const Message &message)
{
    Message answer;
    return send_all(fd, &message, sizeof(message)) && receive_all(fd, &answer, sizeof(answer)) &&
           std::memcmp(&answer, &message, sizeof(answer)) == 0;
}

Backend::Backend(const Endpoint &endpoint)
    : endpoint_(endpoint), listener_(listen_at(endpoint)), epoll_(must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      stop_(must(eventfd(0, EFD_CLOEXEC), "eventfd"))
{
    for (const int fd : {listener_.get(), stop_.get()}) {
        epoll_event event{EPOLLIN, {.fd = fd}};
        must(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    }
    thread_ = std::thread([this] { serve(); });
}

Backend::~Backend()
{
    eventfd_write(stop_.get(), 1);
    thread_.join();
    {
        const std::lock_guard lock(bulk_mutex_);
        for (const UniqueFd &fd : bulk_fds_)
            shutdown(fd.get(), SHUT_RDWR);
    }
    for (std::thread &thread : bulk_)
        thread.join();
}

void Backend::serve()
{
    std::array<epoll_event, 256> events;
    for (;;) {
        const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = events[size_t(i)].data.fd;
            if (fd == stop_.get())
                return;
            if (fd == listener_.get()) {
                accept_all();
                continue;
            }
            const auto found = clients_.find(fd);
            if (found != clients_.end() && !serve_client(*found->second))
                clients_.erase(found);
        }
    }
}

void Backend::accept_all()
{
    for (;;) {
        auto client = std::make_unique<Client>();
        client->fd.reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        const int fd = client->fd.get();
        if (fd < 0)
            return;
        if (endpoint_.kind == Kind::tcp) {
            const int on = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        }
        epoll_event event{EPOLLIN, {.fd = fd}};
        must(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
        clients_.emplace(fd, std::move(client));
    }
}

bool Backend::serve_client(Client &client)
{
    const int fd = client.fd.get();
    const ssize_t count = recv(fd, client.buffer + client.filled, message_size - client.filled, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (count <= 0)
        return false;
    client.filled += size_t(count);
    if (client.filled < message_size)
        return true;
    client.filled = 0;
    Message message;
    std::memcpy(&message, client.buffer, sizeof(message));
    switch (message.ask) {
    case Ask::echo:
    case Ask::last:
        // 64 bytes of answer for 64 bytes taken: there is always room for them
        if (send(fd, &message, sizeof(message), MSG_NOSIGNAL) != ssize_t(sizeof(message)))
            return false;
        return message.ask == Ask::echo;
    case Ask::take_bulk:
    case Ask::take_bulk_aside:
    case Ask::send_bulk:
        must(epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr), "epoll_ctl");
        start_bulk(std::move(client.fd), message);
        return false;
    }
    return false;
}

void Backend::start_bulk(UniqueFd fd, const Message &message)
{
    must(fcntl(fd.get(), F_SETFL, 0), "F_SETFL"); // blocking from here on
    const std::lock_guard lock(bulk_mutex_);
    const auto own = bulk_fds_.insert(bulk_fds_.end(), std::move(fd));
    bulk_.emplace_back([this, own, message] {
        const int bulk_fd = own->get();
        if (message.ask == Ask::take_bulk_aside)
            yield_to_others();
        if (message.ask == Ask::send_bulk)
            sluice::bench::send_bulk(bulk_fd, message.bytes);
        else if (receive_bulk(bulk_fd, message.bytes))
            send_all(bulk_fd, &message, sizeof(message));
        const std::lock_guard done(bulk_mutex_);
        bulk_fds_.erase(own);
    });
}

} // namespace sluice::bench
