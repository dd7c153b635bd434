// SPDX-License-Identifier: LGPL-2.1-or-later

#include "proxy_subject.hpp"

#include <fmt/format.h>

namespace sluice::bench {

namespace {

std::string proc(pid_t pid, const char *name)
{
    return file_text(fmt::format("/proc/{}/{}", pid, name));
}

// The number after `key` in a text of lines such as "Pss:   120 kB".
uint64_t number_after(const std::string &text, const char *key)
{
    const size_t at = text.find(key);
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + std::strlen(key), nullptr, 10);
}

// The paths of a folder's entries; none if the process it belongs to has just ended.
std::vector<std::string> entries(const std::string &folder)
{
    std::vector<std::string> paths;
    std::error_code gone;
    std::filesystem::directory_iterator at(folder, gone);
    for (; !gone && at != std::filesystem::directory_iterator(); at.increment(gone))
        paths.push_back(at->path().string());
    return paths;
}

void add_tree(pid_t pid, std::vector<pid_t> &into)
{
    into.push_back(pid);
    for (const std::string &task : entries(fmt::format("/proc/{}/task", pid))) {
        std::istringstream children(file_text(task + "/children"));
        for (pid_t child; children >> child;)
            add_tree(child, into);
    }
}

// Time of the children that a process has waited for, which nobody else gives account of.
double reaped_s(pid_t pid)
{
    const std::string stat = proc(pid, "stat");
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos)
        return 0;
    std::istringstream fields(stat.substr(name_end + 2));
    std::string skipped;
    for (int field = 3; field < 16; ++field)
        fields >> skipped;
    uint64_t user = 0, system = 0;
    fields >> user >> system;
    return double(user + system) / double(sysconf(_SC_CLK_TCK));
}

std::string replace_all(std::string text, const std::string &what, const std::string &by)
{
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
        text.replace(at, what.size(), by);
    return text;
}

} // namespace

Contestant Contestant::parse(const std::string &text)
{
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw std::invalid_argument("not NAME=COMMAND: " + text);
    Contestant contestant{text.substr(0, equals), {}};
    std::istringstream words(text.substr(equals + 1));
    for (std::string word; words >> word;)
        contestant.argv.push_back(word);
    return contestant;
}

Subject::Subject(const Contestant &contestant, Path path, const Endpoint &upstream)
    : endpoint_(contestant.is_proxy() ? Endpoint::unused(path.client, folder_ / "listen") : upstream)
{
    if (!contestant.is_proxy())
        return;
    std::vector<std::string> argv;
    for (const std::string &word : contestant.argv)
        argv.push_back(replace_all(replace_all(replace_all(word, "%l", endpoint_.text), "%u", upstream.text), "%d",
                                   folder_.path().string()));
    child_ = Command(argv).env("LC_ALL", "C.UTF-8").start();
}

Subject::~Subject()
{
    if (!child_)
        return;
    // those that serve a connection of their own end with it, or may be stuck in it
    std::vector<pid_t> all = processes();
    child_->kill(SIGTERM);
    child_->wait(Deadline{2});
    all.erase(all.begin());
    for (const pid_t pid : all)
        kill(pid, SIGKILL);
}

namespace {

// What waitid() says of a child that is left unreaped; si_pid is 0 as long as it runs.
siginfo_t look_at(pid_t pid)
{
    siginfo_t info{};
    must(waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT), "waitid");
    return info;
}

} // namespace

bool Subject::alive() const
{
    return !child_ || look_at(child_->pid()).si_pid == 0;
}

std::string Subject::ending() const
{
    const siginfo_t info = look_at(child_->pid());
    return fmt::format("{} {}\n", info.si_code == CLD_EXITED ? "exit status" : "signal", info.si_status);
}

int Subject::exit_status() const
{
    const siginfo_t info = look_at(child_->pid());
    return info.si_code == CLD_EXITED ? info.si_status : -1;
}

std::vector<pid_t> Subject::processes() const
{
    std::vector<pid_t> pids;
    if (child_)
        add_tree(child_->pid(), pids);
    return pids;
}

double Subject::cpu_s() const
{
    double sum = 0;
    for (const pid_t pid : processes()) {
        clockid_t clock;
        timespec time{};
        // the clock has nanoseconds where /proc has ticks; a process that has just ended has none
        if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &time) == 0)
            sum += double(time.tv_sec) + double(time.tv_nsec) / 1e9 + reaped_s(pid);
    }
    return sum;
}

uint64_t Subject::memory_bytes() const
{
    uint64_t sum = 0;
    for (const pid_t pid : processes())
        sum += number_after(proc(pid, "smaps_rollup"), "\nPss:") * 1024;
    return sum;
}

size_t Subject::descriptors() const
{
    size_t sum = 0;
    for (const pid_t pid : processes())
        sum += entries(fmt::format("/proc/{}/fd", pid)).size();
    return sum;
}

size_t Subject::pipe_descriptors() const
{
    size_t sum = 0;
    std::error_code gone;
    for (const pid_t pid : processes())
        for (const std::string &fd : entries(fmt::format("/proc/{}/fd", pid)))
            sum += std::filesystem::read_symlink(fd, gone).string().starts_with("pipe:");
    return sum;
}

Trace::Trace(const Subject &subject)
{
    const std::vector<pid_t> pids = subject.processes();
    std::vector<std::string> argv{"strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", folder_ / "counts"};
    for (const pid_t pid : pids)
        argv.insert(argv.end(), {"-p", std::to_string(pid)});
    try {
        strace_ = Command(argv).start();
    } catch (const std::system_error &) {
        return; // not installed
    }
    const auto attached = [&] {
        for (const pid_t pid : pids)
            for (const std::string &task : entries(fmt::format("/proc/{}/task", pid)))
                if (number_after(file_text(task + "/status"), "\nTracerPid:") == 0)
                    return false;
        return true;
    };
    if (pids.empty() || !eventually(attached, Deadline{5}))
        strace_.reset();
}

std::optional<double> Trace::finish()
{
    if (!strace_)
        return std::nullopt;
    strace_->kill(SIGINT);
    if (!strace_->wait(Deadline{20}))
        return std::nullopt;
    // "CALLS total" is the last line
    std::istringstream lines(file_text(folder_ / "counts"));
    std::string line, last;
    while (std::getline(lines, line))
        if (!line.empty())
            last = line;
    if (last.find("total") == std::string::npos)
        return std::nullopt;
    return std::atof(last.c_str());
}

} // namespace sluice::bench
