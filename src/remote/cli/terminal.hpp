// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A terminal in full-screen use: raw input, the alternate screen, no cursor, and all of it
// put back when the owner goes or leave() is called. Written to without blocking: a
// terminal that does not take what is drawn gets the newest picture when it does. On the
// loop's thread.

#include <functional>
#include <string>
#include <vector>

#include <termios.h>

#include <sluice/event.hpp>

#include "remote/cli/table.hpp"
#include "remote/cli/top_view.hpp"
#include "util/base/result.hpp"
#include "util/base/unique_fd.hpp"

namespace sluice::cli {

class Terminal {
public:
    // Of stdin and stdout. Code: ENOTTY where one of them is no terminal, or one that
    // cannot do it.
    static Result<UniqueFd> open_output();

    // `output` from open_output(); `on_input` gets what is typed, and "" at the end of it.
    Terminal(Loop loop, UniqueFd output, std::function<void(std::string_view)> on_input);
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;
    ~Terminal() { leave(); }

    void enter();
    void leave();
    Size size() const;
    void draw(const std::vector<Line> &lines);

private:
    void write_on();

    Loop loop_;
    UniqueFd output_;
    std::function<void(std::string_view)> on_input_;
    bool colours_;
    bool entered_ = false;
    termios before_{};
    std::string writing_; // what is left of the picture that is on its way
    std::string next_;    // the newest one after it
    Handle input_;
    Handle writable_;
};

} // namespace sluice::cli
