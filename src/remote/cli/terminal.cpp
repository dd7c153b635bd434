// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/terminal.hpp"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util/net/format.hpp"

namespace sluice::cli {
namespace {

// ECMA-48 and xterm: alternate screen, cursor, erase to the end of line and of screen.
constexpr const char *enter_screen = "\x1b[?1049h\x1b[?25l";
constexpr const char *leave_screen = "\x1b[?25h\x1b[?1049l";
constexpr const char *home = "\x1b[H";
constexpr const char *erase_line = "\x1b[K";
constexpr const char *erase_below = "\x1b[J";

constexpr int leave_timeout_ms = 1000;

} // namespace

Result<UniqueFd> Terminal::open_output()
{
    const char *term = std::getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return fail(ENOTTY, _("standard input and output are no terminal"));
    if (!term || !*term || std::string_view(term) == "dumb")
        return fail(ENOTTY, _("this terminal cannot move its cursor, as TERM says"));
    // a file description of our own: O_NONBLOCK on the shared one would be everybody's
    const char *name = ttyname(STDOUT_FILENO);
    UniqueFd output(name ? open(name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1);
    if (!output)
        output.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!output)
        return fail_errno(errno, _("cannot open the terminal"));
    return output;
}

Terminal::Terminal(Loop loop, UniqueFd output, std::function<void(std::string_view)> on_input)
    : loop_(std::move(loop)), output_(std::move(output)), on_input_(std::move(on_input)),
      colours_(wants_colours(output_.get()))
{
    writable_ = loop_.watch(output_.get(), 0, [this](int) { write_on(); });
    input_ = loop_.watch(STDIN_FILENO, SLUICE_EVENT_READABLE, [this](int) {
        char typed[64];
        const ssize_t count = read(STDIN_FILENO, typed, sizeof typed);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        if (count <= 0)
            input_.update(0);
        on_input_(std::string_view(typed, count > 0 ? static_cast<size_t>(count) : 0));
    });
}

void Terminal::enter()
{
    if (std::exchange(entered_, true))
        return;
    tcgetattr(STDIN_FILENO, &before_);
    termios raw = before_;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    next_ = enter_screen + next_;
    write_on();
}

void Terminal::leave()
{
    if (!std::exchange(entered_, false))
        return;
    next_ = leave_screen;
    // a terminal that takes nothing is not waited for beyond this
    pollfd entry{output_.get(), POLLOUT, 0};
    write_on();
    while (!(writing_.empty() && next_.empty()) && poll(&entry, 1, leave_timeout_ms) > 0 &&
           !(entry.revents & (POLLERR | POLLHUP)))
        write_on();
    tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Size Terminal::size() const
{
    winsize size{};
    if (ioctl(output_.get(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return {};
    return {size.ws_col, size.ws_row};
}

void Terminal::draw(const std::vector<Line> &lines)
{
    if (!entered_)
        return;
    std::string picture = home;
    for (size_t i = 0; i < lines.size(); ++i) {
        picture += i > 0 ? "\r\n" : "";
        picture += paint(lines[i], colours_);
        picture += erase_line;
    }
    picture += erase_below;
    // the picture that it takes the place of may hold the way into the screen
    next_ = next_.starts_with(enter_screen) ? enter_screen + picture : picture;
    write_on();
}

void Terminal::write_on()
{
    for (;;) {
        if (writing_.empty())
            writing_ = std::exchange(next_, {});
        if (writing_.empty())
            return writable_.update(0);
        const ssize_t count = write(output_.get(), writing_.data(), writing_.size());
        if (count >= 0) {
            writing_.erase(0, static_cast<size_t>(count));
        } else if (errno == EAGAIN) {
            return writable_.update(SLUICE_EVENT_WRITABLE);
        } else if (errno != EINTR) {
            // it has gone; the end of the input says so too
            writing_.clear();
            next_.clear();
        }
    }
}

} // namespace sluice::cli
