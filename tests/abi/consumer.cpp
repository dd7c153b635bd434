// SPDX-License-Identifier: LGPL-2.1-or-later

// What a stranger to the tree writes in C++20 against the installed header: owners,
// lambdas, and the awaitables in a coroutine type of his own. Prints the version of
// the library it runs on.

#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

#include <sluice/event.hpp>

namespace {

// The smallest coroutine that can be awaited by nobody: starts at once, ends by itself.
struct Detached {
    struct promise_type {
        Detached get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::abort(); }
    };
};

Detached speak(sluice::Loop loop, int fd)
{
    using namespace std::chrono_literals;
    for (std::string_view word : {"half ", "close"}) {
        co_await loop.sleep_for(1ms);
        co_await loop.writable(fd);
        if (::write(fd, word.data(), word.size()) < 0)
            std::perror("write");
    }
    ::close(fd);
}

Detached listen(sluice::Loop loop, int fd, std::string &heard)
{
    for (;;) {
        co_await loop.readable(fd);
        char buffer[64];
        ssize_t got = ::read(fd, buffer, sizeof buffer);
        if (got <= 0)
            break;
        heard.append(buffer, static_cast<size_t>(got));
    }
    ::close(fd);
    loop.quit();
}

} // namespace

int main()
{
    int ends[2];
    if (::pipe(ends) < 0)
        return 1;

    sluice::Loop loop;
    std::string heard;
    int beats = 0;
    auto heart = loop.every(std::chrono::milliseconds{1}, [&] { ++beats; });
    listen(loop, ends[0], heard);
    speak(loop, ends[1]);
    loop.run();
    heart.remove();
    loop.drain();

    sluice_loop_stats left = loop.stats();
    if (heard != "half close" || beats == 0 || left.handles != 0 || left.timeouts != 0) {
        std::fprintf(stderr, "heard '%s', %d beats, %d handles left\n", heard.c_str(), beats,
                     static_cast<int>(left.handles));
        return 1;
    }
    std::puts(sluice_version());
    return std::string_view(sluice_version()) == SLUICE_VERSION ? 0 : 1;
}
