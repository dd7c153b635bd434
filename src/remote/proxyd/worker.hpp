// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One event loop with its connections: it accepts from the sockets of every service and
// owns what comes of that. Everything is on the loop's thread; WorkerThread is how the
// main thread reaches it.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sluice/event.hpp>

#include "remote/proxyd/admin/status.hpp"
#include "remote/proxyd/reasons.hpp"
#include "remote/proxyd/service.hpp"
#include "remote/proxyd/shared.hpp"
#include "remote/relay/buffer_pool.hpp"
#include "remote/relay/pipe_pool.hpp"
#include "util/net/listen.hpp"

namespace sluice::proxyd {

class Connection;

// What a worker tells of itself.
struct WorkerReport {
    struct Live {
        Service::Moved moved; // by connections that are open
        uint64_t buffer_bytes = 0;
    };
    WorkerStatus worker;
    std::map<std::string, Live> live; // by service
    std::vector<ConnectionStatus> connections;
};

class Worker {
public:
    Worker(std::string name, Loop loop, Shared &shared, size_t pipes_max, bool alone);
    Worker(const Worker &) = delete;
    Worker &operator=(const Worker &) = delete;
    ~Worker();

    // Accept for a service; `listener` is this worker's own copy.
    void serve(const std::shared_ptr<Service> &service, Listener listener);
    void forget_services();
    void hold_all();
    void release_all();
    void release(const std::string &service);

    bool close(uint64_t id, Closing reason);
    void close_all(Closing reason);
    WorkerReport report(bool with_connections) const;

    // --- for connections ---
    Loop &loop() noexcept { return loop_; }
    Shared &shared() noexcept { return shared_; }
    relay::PipePool &pipes() noexcept { return pipes_; }
    std::shared_ptr<relay::BufferPool> buffers(const std::string &service, const Limits &limits);
    // It is over: takes it off the list now and destroys it a little later.
    void bury(Connection &connection);

private:
    struct Served {
        std::shared_ptr<Service> service;
        std::vector<std::unique_ptr<Acceptor>> acceptors;
    };
    struct Buffers {
        uint32_t bytes_each = 0;
        uint64_t limit = 0;
        std::shared_ptr<relay::BufferPool> pool; // shared with the connections that use it
    };

    void accepted(const std::shared_ptr<Service> &service, UniqueFd client, const SocketAddress &address);
    void paused(const Service &service, const Error &why);
    void unlink(Connection &connection) noexcept;
    void tick();
    void empty_grave();

    const std::string name_;
    Loop loop_;
    Shared &shared_;
    const bool alone_; // the only one: no other wants its share of the clients
    relay::PipePool pipes_;
    std::map<std::string, Buffers> buffers_;
    std::map<std::string, Served> served_;

    Connection *first_ = nullptr, *last_ = nullptr; // in the order they came
    size_t count_ = 0;
    std::vector<std::unique_ptr<Connection>> grave_;
    Timeout burial_, tick_;
    int64_t tick_due_ = 0;
    double lag_seconds_ = 0, lag_max_seconds_ = 0;
};

// A worker where it lives: on the main loop if it is the only one, else in a thread.
class WorkerThread {
public:
    WorkerThread(const Loop &main, unsigned index, unsigned of, Shared &shared, size_t pipes_max);
    ~WorkerThread();

    // Run on its thread: and wait for it, or soon.
    void call(const std::function<void(Worker &)> &fn);
    void post(std::function<void(Worker &)> fn);

    // For the watchdog: ask for a sign of life, and whether the last question was answered.
    void ask();
    bool answered() const noexcept { return *answered_; }

private:
    Loop loop_;
    std::unique_ptr<EventThread> thread_; // null: the main loop
    std::shared_ptr<Worker> worker_;      // held weakly by what was posted
    std::shared_ptr<std::atomic<bool>> answered_ = std::make_shared<std::atomic<bool>>(true);
};

} // namespace sluice::proxyd
