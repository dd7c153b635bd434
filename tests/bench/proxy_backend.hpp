// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The upstream of a benchmark: a thread with an epoll loop that answers messages of 64
// bytes with as many. A message also says what is to come: another one, the end, or a
// bulk transfer, which then has a thread and blocking calls of its own. Everything is
// gone with its owner, clients that are still connected included.

#include <sys/epoll.h>

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "proxy_sockets.hpp"

namespace sluice::bench {

inline constexpr size_t message_size = 64;
inline constexpr size_t bulk_block = 256 * 1024;

enum class Ask : uint64_t {
    echo = 0x11,            // answer, and wait for more
    last = 0x22,            // answer, and close
    take_bulk = 0x33,       // read `bytes`, then answer
    send_bulk = 0x44,       // write `bytes`
    take_bulk_aside = 0x55, // the same as take_bulk, when nobody else of us has anything to do
};

// The 64 bytes of a message; the answer is the same ones.
struct Message {
    Ask ask = Ask::echo;
    uint64_t bytes = 0;
    uint64_t mark = 0; // anything, to be compared with the answer
    uint64_t filler[5] = {};
};
static_assert(sizeof(Message) == message_size);

// Blocking; false when the other end went away or had nothing for us in time.
bool send_all(int fd, const void *data, size_t size);
bool receive_all(int fd, void *data, size_t size);
bool send_bulk(int fd, uint64_t bytes);
bool receive_bulk(int fd, uint64_t bytes);
// This thread runs when no other wants to.
void yield_to_others();
// One message and its answer; the answer is looked at.
bool exchange(int fd, const Message &message);

class Backend {
public:
    explicit Backend(const Endpoint &endpoint);
    ~Backend();
    Backend(const Backend &) = delete;
    Backend &operator=(const Backend &) = delete;

    const Endpoint &endpoint() const { return endpoint_; }

private:
    struct Client {
        UniqueFd fd;
        char buffer[message_size];
        size_t filled = 0;
    };

    void serve();
    void accept_all();
    bool serve_client(Client &client); // false: it is done with
    void start_bulk(UniqueFd fd, const Message &message);

    Endpoint endpoint_;
    UniqueFd listener_;
    UniqueFd epoll_;
    UniqueFd stop_; // an eventfd
    std::unordered_map<int, std::unique_ptr<Client>> clients_;
    std::mutex bulk_mutex_; // over the two that follow
    std::vector<std::thread> bulk_;
    std::list<UniqueFd> bulk_fds_;
    std::thread thread_;
};

} // namespace sluice::bench
