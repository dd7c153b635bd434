// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// Signals as something to read, so that they are handled by a loop and not in the middle
// of anything (signalfd(2)). To be asked for before there are threads, which inherit that
// the signals are blocked.

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

#include "util/base/unique_fd.hpp"

namespace sluice {

// Blocks them for this thread; the descriptor is readable when one is there.
inline UniqueFd take_signals(std::initializer_list<int> numbers)
{
    sigset_t set;
    sigemptyset(&set);
    for (int number : numbers)
        sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    return UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

// The number of the next one, or 0 when there is none.
inline int next_signal(int fd)
{
    signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

} // namespace sluice
