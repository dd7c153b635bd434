// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A relay between stdin/stdout as sshd would give it and a unix socket that the test
// listens on. The test holds the three other ends: `input` (becomes the relay's
// stdin), `output` (its stdout) and `server`, once it has accepted.

#include <string>
#include <utility>
#include <vector>

#include "child.hpp"

namespace sluice::test {

enum class Stdio {
    pipes,      // Debian's sshd
    socketpair, // one for both, as in sshd builds without USE_PIPES
};

inline const char *name_of(Stdio stdio)
{
    return stdio == Stdio::pipes ? "pipes" : "socketpair";
}

// The descriptors of a relay: ours, and those the child gets.
struct RelayStdio {
    UniqueFd input;
    UniqueFd output;
    UniqueFd child_input;
    UniqueFd child_output;

    static RelayStdio make(Stdio kind)
    {
        if (kind == Stdio::pipes) {
            Ends in = make_pipe();
            Ends out = make_pipe();
            return {std::move(in.second), std::move(out.first), std::move(in.first), std::move(out.second)};
        }
        Ends pair = make_socketpair();
        UniqueFd ours = duplicate(pair.first.get());
        UniqueFd theirs = duplicate(pair.second.get());
        return {std::move(ours), std::move(pair.first), std::move(pair.second), std::move(theirs)};
    }
};

// End of our writing: the relay sees EOF on its stdin.
inline void end_input(UniqueFd &input)
{
    shutdown(input.get(), SHUT_WR); // a pipe says ENOTSOCK, and has its EOF from close()
    input.reset();
}

struct RelaySession {
    Child child;
    UniqueFd input;
    UniqueFd output;
    UniqueFd server;

    static RelaySession start(Stdio kind, Command command)
    {
        RelayStdio stdio = RelayStdio::make(kind);
        command.input(stdio.child_input.get()).output(stdio.child_output.get());
        return {command.start(), std::move(stdio.input), std::move(stdio.output), UniqueFd{}};
    }

    void end_input() { sluice::test::end_input(input); }
};

} // namespace sluice::test
