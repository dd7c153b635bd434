// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/worker.hpp"

#include <algorithm>
#include <future>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "remote/proxyd/connection.hpp"
#include "util/async/post.hpp"
#include "util/base/clock.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

using std::chrono::microseconds;

constexpr microseconds parked{-1};
constexpr microseconds tick_interval = std::chrono::seconds{1};
// Alone, a worker takes clients as they come; beside others few at a time, or it would
// take them all before the others have woken up.
constexpr int batch_alone = 64;
constexpr int batch_shared = 4;
constexpr size_t buffers_kept = 64; // rings that stay mapped for the next who needs one
constexpr size_t pipe_bytes = 1 << 20;
constexpr double lag_weight = 0.2; // of the newest in the running mean

} // namespace

Worker::Worker(std::string name, Loop loop, Shared &shared, size_t pipes_max, bool alone)
    : name_(std::move(name)), loop_(std::move(loop)), shared_(shared), alone_(alone), pipes_(pipe_bytes, pipes_max)
{
    burial_ = loop_.every(parked, [this] { empty_grave(); });
    tick_ = loop_.every(parked, [this] { tick(); });
}

Worker::~Worker()
{
    served_.clear();
    close_all(Closing::cut);
    grave_.clear();
}

// --- accepting -----------------------------------------------------------------------

void Worker::serve(const std::shared_ptr<Service> &service, Listener listener)
{
    int on = 1;
    for (const UniqueFd &fd : listener.fds()) // accepted ones inherit it
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Served &served = served_[service->name()];
    served.service = service;
    Acceptor::Callbacks callbacks;
    callbacks.reserve = [service] { return service->reserve(); };
    callbacks.unreserve = [service] { service->unreserve(); };
    callbacks.accepted = [this, service](UniqueFd client, const SocketAddress &address) {
        accepted(service, std::move(client), address);
    };
    callbacks.paused = [this, service](const Error &why) { paused(*service, why); };
    callbacks.recovered = [this, service] {
        shared_.log.record(Priority::info, message_id::accept_recovered,
                           format(_("service {}: accepting again"), service->name()),
                           {{"SLUICE_SERVICE", service->name()}});
    };
    Acceptor::Limits limits;
    limits.batch = alone_ ? batch_alone : batch_shared;
    served.acceptors.push_back(std::make_unique<Acceptor>(loop_, std::move(listener), std::move(callbacks), limits));
}

void Worker::forget_services()
{
    served_.clear();
}

void Worker::hold_all()
{
    for (auto &[name, served] : served_) {
        for (auto &acceptor : served.acceptors)
            acceptor->hold();
    }
}

void Worker::release_all()
{
    for (auto &[name, served] : served_)
        release(name);
}

void Worker::release(const std::string &service)
{
    auto served = served_.find(service);
    if (served == served_.end())
        return;
    for (auto &acceptor : served->second.acceptors)
        acceptor->release();
}

void Worker::paused(const Service &service, const Error &why)
{
    shared_.log.record(Priority::warning, message_id::accept_paused,
                       format(_("service {}: {}; clients wait until there is room"), service.name(), why.message),
                       {{"SLUICE_SERVICE", service.name()}});
}

void Worker::accepted(const std::shared_ptr<Service> &service, UniqueFd client, const SocketAddress &address)
{
    auto connection = std::make_unique<Connection>(*this, service, service->settings(), std::move(client), address);
    Connection *one = connection.release(); // on the list, from where bury() takes it
    one->before = last_;
    (last_ ? last_->after : first_) = one;
    last_ = one;
    if (count_++ == 0) {
        tick_due_ = monotonic_usec() + tick_interval.count();
        tick_.update(tick_interval);
    }
    one->start();
}

// --- connections -----------------------------------------------------------------------

std::shared_ptr<relay::BufferPool> Worker::buffers(const std::string &service, const Limits &limits)
{
    Buffers &entry = buffers_[service];
    if (!entry.pool || entry.bytes_each != limits.buffer_bytes || entry.limit != limits.memory_bytes) {
        entry = {limits.buffer_bytes, limits.memory_bytes, nullptr};
        entry.pool = std::make_shared<relay::BufferPool>(loop_, limits.buffer_bytes, buffers_kept, limits.memory_bytes);
    }
    return entry.pool;
}

void Worker::unlink(Connection &connection) noexcept
{
    (connection.before ? connection.before->after : first_) = connection.after;
    (connection.after ? connection.after->before : last_) = connection.before;
    --count_;
}

void Worker::bury(Connection &connection)
{
    unlink(connection);
    if (grave_.empty())
        burial_.update(microseconds{0});
    grave_.emplace_back(&connection);
    for (auto &[name, served] : served_) {
        for (auto &acceptor : served.acceptors)
            acceptor->resource_freed();
    }
    if (count_ > 0)
        return;
    tick_.park();
    if (shared_.draining)
        shared_.on_drained();
}

void Worker::empty_grave()
{
    burial_.park();
    auto dead = std::move(grave_);
    grave_.clear();
}

bool Worker::close(uint64_t id, Closing reason)
{
    for (Connection *one = first_; one; one = one->after) {
        if (one->id() == id) {
            one->end(reason);
            return true;
        }
    }
    return false;
}

void Worker::close_all(Closing reason)
{
    while (first_)
        first_->end(reason);
}

// Once a second while there are connections: how late are we, and those that have lived
// for a while get what short ones do not need.
void Worker::tick()
{
    int64_t now = monotonic_usec();
    lag_seconds_ += lag_weight * (static_cast<double>(std::max<int64_t>(now - tick_due_, 0)) / 1e6 - lag_seconds_);
    lag_max_seconds_ = std::max(lag_max_seconds_, lag_seconds_);
    tick_due_ += tick_interval.count();
    for (Connection *one = last_; one && !one->settled(); one = one->before)
        one->settle();
}

WorkerReport Worker::report(bool with_connections) const
{
    WorkerReport report;
    report.worker.name = name_;
    report.worker.connections = count_;
    report.worker.loop_lag_seconds = lag_seconds_;
    report.worker.loop_lag_max_seconds = lag_max_seconds_;
    int64_t now = monotonic_usec();
    for (const Connection *one = first_; one; one = one->after) {
        WorkerReport::Live &live = report.live[one->service().name()];
        Service::Moved moved = one->moved();
        live.moved.up += moved.up;
        live.moved.down += moved.down;
        live.moved.copying += moved.copying;
        live.moved.spliced += moved.spliced;
        if (with_connections)
            report.connections.push_back(one->status(now));
    }
    for (const auto &[name, buffers] : buffers_)
        report.live[name].buffer_bytes += buffers.pool->in_use_bytes();
    return report;
}

// --- where it lives ----------------------------------------------------------------------

WorkerThread::WorkerThread(const Loop &main, unsigned index, unsigned of, Shared &shared, size_t pipes_max)
    : loop_(main)
{
    std::string name = of == 1 ? "main" : fmt::format("worker-{}", index);
    if (of > 1) {
        thread_ = std::make_unique<EventThread>(name.c_str());
        loop_ = thread_->loop();
    }
    worker_ = std::make_shared<Worker>(name, loop_, shared, pipes_max, of == 1);
}

WorkerThread::~WorkerThread()
{
    if (thread_) {
        std::promise<void> gone;
        sluice::post(loop_, [this, &gone] {
            worker_.reset();
            gone.set_value();
        });
        gone.get_future().wait();
    }
}

void WorkerThread::call(const std::function<void(Worker &)> &fn)
{
    if (!thread_) {
        fn(*worker_);
        return;
    }
    std::promise<void> done;
    sluice::post(loop_, [this, &fn, &done] {
        try {
            fn(*worker_);
            done.set_value();
        } catch (...) {
            done.set_exception(std::current_exception());
        }
    });
    done.get_future().get();
}

void WorkerThread::post(std::function<void(Worker &)> fn)
{
    sluice::post(loop_, [worker = std::weak_ptr<Worker>(worker_), fn = std::move(fn)] {
        if (auto there = worker.lock())
            fn(*there);
    });
}

void WorkerThread::ask()
{
    *answered_ = false;
    sluice::post(loop_, [answered = answered_] { *answered = true; });
}

} // namespace sluice::proxyd
