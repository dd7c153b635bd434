// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/event/default_loop.hpp"

#include <atomic>
#include <cerrno>
#include <mutex>

namespace sluice::event {
namespace {

enum class Choice { none, default_loop, application };

struct Registry {
    std::mutex mutex;
    std::atomic<Choice> choice{Choice::none};
    EventImpl impl{}; // set once, before choice says so
    std::atomic<LoopImpl *> loop{nullptr};
};

// Never destroyed: callbacks may still come while the process ends.
Registry &registry()
{
    static Registry &instance = *new Registry;
    return instance;
}

} // namespace

LoopImpl *default_loop()
{
    Registry &known = registry();
    if (LoopImpl *loop = known.loop.load(std::memory_order_acquire))
        return loop;
    std::lock_guard lock(known.mutex);
    if (!known.loop.load(std::memory_order_relaxed))
        known.loop.store(LoopImpl::create(nullptr, SLUICE_BACKEND_AUTO), std::memory_order_release);
    return known.loop.load(std::memory_order_relaxed);
}

const EventImpl *registered_impl()
{
    Registry &known = registry();
    Choice choice = known.choice.load(std::memory_order_acquire);
    if (choice == Choice::none) {
        std::lock_guard lock(known.mutex);
        choice = known.choice.load(std::memory_order_relaxed);
        if (choice == Choice::none)
            known.choice.store(choice = Choice::default_loop, std::memory_order_release);
    }
    return choice == Choice::application ? &known.impl : nullptr;
}

int register_impl(const EventImpl &impl)
{
    if (!impl.add_handle || !impl.update_handle || !impl.remove_handle || !impl.add_timeout || !impl.update_timeout ||
        !impl.remove_timeout)
        return -EINVAL;
    Registry &known = registry();
    std::lock_guard lock(known.mutex);
    if (known.choice.load(std::memory_order_relaxed) != Choice::none)
        return -EBUSY;
    known.impl = impl;
    known.choice.store(Choice::application, std::memory_order_release);
    return 0;
}

} // namespace sluice::event
