// SPDX-License-Identifier: LGPL-2.1-or-later
#include "interop/event_host.hpp"

#include <chrono>

#include <glib.h>
#include <libvirt/libvirt.h>

#include "support/deadline.hpp"

namespace sluice::test {
namespace {

constexpr unsigned patience_ms = 60'000;

gboolean set_flag(gpointer flag)
{
    *static_cast<bool *>(flag) = true;
    return G_SOURCE_CONTINUE;
}

} // namespace

EventHost::EventHost(bool on_thread)
{
    virEventRegisterImpl(sluice_event_add_handle, sluice_event_update_handle, sluice_event_remove_handle,
                         sluice_event_add_timeout, sluice_event_update_timeout, sluice_event_remove_timeout);
    if (on_thread)
        thread_ = std::thread([this] {
            while (!stop_)
                sluice_event_run_default_impl();
        });
}

EventHost::~EventHost()
{
    stop_ = true;
    sluice_loop_wake(sluice_loop_default());
    if (thread_.joinable())
        thread_.join();
}

void EventHost::change(const std::function<void()> &action)
{
    {
        std::lock_guard lock(mutex_);
        action();
    }
    changed_.notify_all();
    // whoever runs the loop in until() is to look again
    sluice_loop_wake(sluice_loop_default());
}

bool EventHost::until(const std::function<bool()> &condition)
{
    if (!thread_.joinable())
        return run_until(condition);
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(patience_ms), condition);
}

bool EventHost::holds(const std::function<bool()> &condition)
{
    std::lock_guard lock(mutex_);
    return condition();
}

bool EventHost::run_until(const std::function<bool()> &condition)
{
    bool late = false;
    // GLib's own, so that the loop is left with nothing but what libvirt asked of it
    const guint guard = g_timeout_add(patience_ms, set_flag, &late);
    while (!holds(condition) && !late)
        if (sluice_event_run_default_impl() < 0)
            break;
    g_source_remove(guard);
    return holds(condition);
}

bool EventHost::until_idle()
{
    const auto idle = [] {
        sluice_loop_stats stats;
        sluice_loop_get_stats(sluice_loop_default(), &stats, sizeof stats);
        return stats.handles == 0 && stats.timeouts == 0;
    };
    // no callback of ours tells of what libvirt removes
    return thread_.joinable() ? eventually(idle) : run_until(idle);
}

} // namespace sluice::test
