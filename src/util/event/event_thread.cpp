// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/event_thread.hpp"

#include <pthread.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace sluice::event {

EventThread *EventThread::create(const char *name)
{
    GMainContext *context = g_main_context_new();
    LoopImpl *loop = LoopImpl::create(context, SLUICE_BACKEND_AUTO);
    int error = errno;
    g_main_context_unref(context); // the loop has its own reference
    if (!loop) {
        errno = error;
        return nullptr;
    }
    auto *self = new EventThread(name, loop);
    try {
        self->thread_ = std::thread([self] { self->main(); });
    } catch (const std::system_error &failure) {
        delete self;
        errno = failure.code().value();
        return nullptr;
    }
    return self;
}

void EventThread::main()
{
    // the kernel keeps 15 bytes and refuses more
    pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
    g_main_context_push_thread_default(context());
    loop_->run();
    loop_->close();
    loop_->drain();
    g_main_context_pop_thread_default(context());
    if (delete_at_end_)
        delete this;
}

void EventThread::unref() noexcept
{
    if (references_.fetch_sub(1, std::memory_order_acq_rel) > 1)
        return;
    if (thread_.get_id() == std::this_thread::get_id()) {
        delete_at_end_ = true;
        thread_.detach();
        loop_->quit();
        return;
    }
    loop_->quit();
    thread_.join();
    delete this; // and the loop with it, which quit() has still used while the thread ended
}

} // namespace sluice::event
