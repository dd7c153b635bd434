// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// One randomised conversation through a relay: how much each end sends, in what
// pieces and pauses, through which kinds and sizes of buffers, and who closes first.
// Everything follows from a seed and the number of the run.

#include <fcntl.h>
#include <sys/socket.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include <fmt/format.h>

#include "support/traffic.hpp"

namespace sluice::bench {

using namespace sluice::test;

enum class Input { pipe, socketpair, file };

enum class Ending {
    client_first,  // stdin ends first; the server closes when it has seen that and sent all
    server_half,   // the server says it has sent everything, and goes on reading to the end
    server_close,  // the server closes as soon as it has sent everything; nothing is under way to it
    server_unread, // the same with bytes on their way to it that it never reads
};

inline const char *name_of(Input input)
{
    return input == Input::pipe ? "pipes" : input == Input::socketpair ? "socketpair" : "file and pipe";
}

inline const char *name_of(Ending ending)
{
    switch (ending) {
    case Ending::client_first:
        return "client closes first";
    case Ending::server_half:
        return "server half-closes first";
    case Ending::server_close:
        return "server closes first";
    case Ending::server_unread:
        return "server closes with bytes unread";
    }
    return "";
}

struct Scenario {
    uint64_t up_bytes = 0;
    uint64_t down_bytes = 0;
    Input input = Input::pipe;
    Ending ending = Ending::client_first;
    int pipe_sizes[2] = {};   // stdin, stdout; 0 leaves the system's
    int buffer_sizes[4] = {}; // SO_SNDBUF of server, of stdin's and of stdout's end, SO_RCVBUF of server
    Pace paces[4];            // stdin's writer, server's reader, server's writer, stdout's reader

    static Scenario random(uint64_t seed, uint64_t run, bool up, uint64_t bytes_max)
    {
        std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(run), uint32_t(run >> 32), uint32_t(up)};
        std::mt19937_64 dice(sequence);
        Scenario scenario;
        const uint64_t main_bytes = size(dice, bytes_max);
        const uint64_t other_bytes = dice() % 4 == 0 ? size(dice, std::min<uint64_t>(bytes_max, 1'000'000)) : 0;
        scenario.up_bytes = up ? main_bytes : other_bytes;
        scenario.down_bytes = up ? other_bytes : main_bytes;
        scenario.input = Input(dice() % 3);
        scenario.ending = Ending(dice() % (up ? 2 : 4));
        if (scenario.ending == Ending::server_close)
            scenario.up_bytes = 0;
        if (scenario.ending == Ending::server_close || scenario.ending == Ending::server_unread)
            scenario.input = Input(dice() % 2); // a file would end before that
        for (int &bytes : scenario.pipe_sizes)
            bytes = dice() % 2 ? 0 : 4096 << dice() % 9;
        for (int &bytes : scenario.buffer_sizes)
            bytes = dice() % 2 ? 0 : 2048 << dice() % 11;
        for (int i = 0; i < 4; ++i)
            scenario.paces[i] = pace(dice, i < 2 ? scenario.up_bytes : scenario.down_bytes);
        return scenario;
    }

    std::string text() const
    {
        std::string text =
            fmt::format("{} up, {} down, {}, {}; pipe sizes {} {}; socket buffers {} {} {} {}; chunks", up_bytes,
                        down_bytes, name_of(input), name_of(ending), pipe_sizes[0], pipe_sizes[1], buffer_sizes[0],
                        buffer_sizes[1], buffer_sizes[2], buffer_sizes[3]);
        for (const Pace &pace : paces)
            text += fmt::format(" {}{}/{}x{}us", pace.vary ? "<=" : "", pace.chunk_max, pace.pauses_left,
                                pace.pause_us_max);
        return text;
    }

private:
    // Every order of magnitude as likely as every other, and now and then nothing.
    static uint64_t size(std::mt19937_64 &dice, uint64_t bytes_max)
    {
        if (bytes_max == 0 || dice() % 20 == 0)
            return 0;
        const double exponent = std::uniform_real_distribution<double>(0, std::log(double(bytes_max)))(dice);
        return std::min(bytes_max, uint64_t(std::exp(exponent)));
    }

    // Pieces from one byte up, but no more than some ten thousand of them, and pauses of
    // some milliseconds here and there.
    static Pace pace(std::mt19937_64 &dice, uint64_t bytes)
    {
        Pace pace;
        pace.chunk_max = size_t(std::max<uint64_t>(bytes / 20'000 + 1, uint64_t{1} << dice() % 21));
        pace.vary = dice() % 2;
        pace.pauses_left = dice() % 2 ? 0 : int(dice() % 6);
        pace.pause_every = bytes / 6 + 1;
        pace.pause_us_max = 1 << dice() % 14;
        pace.random.seed(uint32_t(dice()));
        return pace;
    }
};

// As a whole or not at all: a size that the system will not give is no matter here.
inline void set_buffer(int fd, int option, int bytes)
{
    if (bytes > 0)
        setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
}

inline void set_pipe_size(int fd, int bytes)
{
    if (bytes > 0)
        fcntl(fd, F_SETPIPE_SZ, bytes);
}

} // namespace sluice::bench
