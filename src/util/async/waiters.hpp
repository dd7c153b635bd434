// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What coroutines of one loop wait on for each other. None of it crosses threads, and
// whoever waits may be destroyed while it does.
//
//     WaitList changed;                  // a condition
//     while (!ready())
//         co_await changed.wait();
//     ...
//     changed.wake_all();                // elsewhere
//
//     OneShot<Result<int>> answer;       // the result of a callback
//     begin([&answer](int value) { answer.set(value); });
//     Result<int> value = co_await answer;

#include <coroutine>
#include <optional>
#include <utility>

namespace sluice {

// Coroutines in the order in which they came. A woken one runs at once, inside the call
// that wakes it; those that begin to wait meanwhile are not woken by the same call. Outlives
// those that wait in it.
class WaitList {
public:
    class Waiter;

    WaitList() noexcept = default;
    WaitList(const WaitList &) = delete;
    WaitList &operator=(const WaitList &) = delete;

    [[nodiscard]] Waiter wait() noexcept;
    bool empty() const noexcept { return first_ == nullptr; }

    // False if nobody waited. The list may be gone afterwards.
    bool wake_one();
    void wake_all();

private:
    void append(Waiter *waiter) noexcept;
    static void unlink(Waiter *waiter) noexcept;

    Waiter *first_ = nullptr;
    Waiter *last_ = nullptr;
};

class [[nodiscard]] WaitList::Waiter {
public:
    explicit Waiter(WaitList &list) noexcept : wanted_(&list) {}
    Waiter(const Waiter &) = delete;
    Waiter &operator=(const Waiter &) = delete;
    ~Waiter() { WaitList::unlink(this); }

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> frame) noexcept
    {
        frame_ = frame;
        wanted_->append(this);
    }
    void await_resume() const noexcept {}

private:
    friend WaitList;

    WaitList *wanted_;
    WaitList *in_ = nullptr; // the list that it stands in now
    Waiter *next_ = nullptr;
    Waiter *previous_ = nullptr;
    std::coroutine_handle<> frame_;
};

inline WaitList::Waiter WaitList::wait() noexcept
{
    return Waiter(*this);
}

inline void WaitList::append(Waiter *waiter) noexcept
{
    waiter->in_ = this;
    waiter->previous_ = last_;
    waiter->next_ = nullptr;
    (last_ ? last_->next_ : first_) = waiter;
    last_ = waiter;
}

inline void WaitList::unlink(Waiter *waiter) noexcept
{
    WaitList *list = std::exchange(waiter->in_, nullptr);
    if (list == nullptr)
        return;
    (waiter->previous_ ? waiter->previous_->next_ : list->first_) = waiter->next_;
    (waiter->next_ ? waiter->next_->previous_ : list->last_) = waiter->previous_;
}

inline bool WaitList::wake_one()
{
    Waiter *waiter = first_;
    if (waiter == nullptr)
        return false;
    unlink(waiter);
    waiter->frame_.resume();
    return true;
}

inline void WaitList::wake_all()
{
    WaitList woken; // on its own, so that this list may go and new waiters may come
    while (first_ != nullptr) {
        Waiter *waiter = first_;
        unlink(waiter);
        woken.append(waiter);
    }
    while (woken.wake_one()) {
    }
}

// A value that comes once and has one that waits for it, before or after it has come.
// `set()` resumes that one inside the call. Outlives both.
template <class T>
class OneShot {
public:
    OneShot() noexcept = default;
    OneShot(const OneShot &) = delete;
    OneShot &operator=(const OneShot &) = delete;

    // The object may be gone afterwards.
    void set(T value)
    {
        value_.emplace(std::move(value));
        if (waiter_)
            std::exchange(waiter_, nullptr).resume();
    }
    bool is_set() const noexcept { return value_.has_value(); }

    bool await_ready() const noexcept { return value_.has_value(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { waiter_ = waiter; }
    T await_resume() { return std::move(*value_); }

private:
    std::optional<T> value_;
    std::coroutine_handle<> waiter_;
};

} // namespace sluice
