// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A program run by a test: started with chosen descriptors, watched, and reaped with
// its CPU time. A child never outlives its owner, and dies with the test program if
// that is killed. Owned by one thread.

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "channels.hpp"

namespace sluice::test {

// How a child ended: with a status, or by a signal.
struct Exit {
    int code = -1;
    int signal = 0;
    double cpu_s = 0; // user and system time

    static Exit from_wait(int status, const rusage &usage)
    {
        const auto seconds = [](const timeval &time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
        return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                seconds(usage.ru_utime) + seconds(usage.ru_stime)};
    }
};

inline std::ostream &operator<<(std::ostream &out, const Exit &exit)
{
    if (exit.signal != 0)
        return out << "killed by signal " << exit.signal;
    return out << "exit code " << exit.code;
}

class Child {
public:
    Child() = default;
    Child(pid_t pid, UniqueFd errors)
        : pid_(pid), pidfd_(must(int(syscall(SYS_pidfd_open, pid, 0)), "pidfd_open")), errors_(std::move(errors))
    {}
    Child(Child &&other) noexcept { swap(other); }
    Child &operator=(Child &&other) noexcept
    {
        Child(std::move(other)).swap(*this);
        return *this;
    }
    ~Child()
    {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }

    pid_t pid() const { return pid_; }
    void kill(int signal) const { must(::kill(pid_, signal), "kill"); }

    // How it ended; nothing when it still ran at the deadline.
    std::optional<Exit> wait(const Deadline &deadline = Deadline{})
    {
        if (!wait_for(pidfd_.get(), POLLIN, deadline))
            return std::nullopt;
        int status = 0;
        rusage usage{};
        must(wait4(pid_, &status, 0, &usage), "wait4");
        pid_ = -1;
        return Exit::from_wait(status, usage);
    }

    // What it has written to stderr so far, if Command gave it a stderr of its own.
    std::string errors() const
    {
        std::string text;
        char block[4096];
        ssize_t count = 0;
        while (errors_ && (count = pread(errors_.get(), block, sizeof(block), off_t(text.size()))) > 0)
            text.append(block, size_t(count));
        return text;
    }

    // CPU time of the living child up to now.
    double cpu_s() const
    {
        clockid_t clock;
        timespec time{};
        if (const int code = clock_getcpuclockid(pid_, &clock); code != 0)
            throw std::system_error(code, std::generic_category(), "clock_getcpuclockid");
        must(clock_gettime(clock, &time), "clock_gettime");
        return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
    }

    // Highest resident memory of the living child since its exec. The figure of
    // wait4() would not do: it counts the copy of this program before the exec too.
    long rss_peak_kib() const
    {
        const std::string status = file_text("/proc/" + std::to_string(pid_) + "/status");
        const size_t at = status.find("VmHWM:");
        return at == std::string::npos ? -1 : std::atol(status.c_str() + at + 6);
    }

    // Waiting in the kernel rather than running or about to run.
    bool sleeping() const
    {
        const std::string stat = file_text("/proc/" + std::to_string(pid_) + "/stat");
        const size_t name_end = stat.rfind(')');
        return name_end != std::string::npos && stat.size() > name_end + 2 && stat[name_end + 2] == 'S';
    }

private:
    void swap(Child &other) noexcept
    {
        std::swap(pid_, other.pid_);
        std::swap(pidfd_, other.pidfd_);
        std::swap(errors_, other.errors_);
    }

    pid_t pid_ = -1;
    UniqueFd pidfd_;
    UniqueFd errors_;
};

// What to run and with what. stdin and stdout are /dev/null unless said otherwise,
// stderr is kept for Child::errors().
class Command {
public:
    static constexpr int closed = -2;

    explicit Command(std::vector<std::string> argv) : argv_(std::move(argv)) {}

    Command &input(int fd) { return stdio_[0] = fd, *this; }
    Command &output(int fd) { return stdio_[1] = fd, *this; }
    Command &errors(int fd) { return stdio_[2] = fd, *this; }
    Command &env(const std::string &name, const std::string &value) { return env_[name] = value, *this; }
    // Hand a listening socket over as systemd does: from descriptor 3 on, with its name.
    Command &pass(int fd, const std::string &name) { return passed_.emplace_back(fd, name), *this; }
    // At most so many open files, softly and hard.
    Command &limit_files(rlim_t count) { return files_max_ = count, *this; }
    Command &as_user(uid_t uid) { return uid_ = uid, *this; }
    // Under this name in argv[0], as a symbolic link would have it.
    Command &program(const std::string &path) { return program_ = path, *this; }

    Child start() const
    {
        UniqueFd held[3]; // above the numbers they are to get, so that none is overwritten
        UniqueFd kept;
        for (int i = 0; i < 3; ++i) {
            if (stdio_[i] == closed)
                continue;
            if (stdio_[i] >= 0)
                held[i] = duplicate(stdio_[i]);
            else if (i == 2)
                held[i] = duplicate(UniqueFd{must(memfd_create("stderr", MFD_CLOEXEC), "memfd_create")}.get());
            else
                held[i] = duplicate(open_file("/dev/null", O_RDWR).get());
        }
        if (stdio_[2] == unset)
            kept = duplicate(held[2].get());

        std::vector<UniqueFd> passed;
        for (const auto &[fd, name] : passed_)
            passed.push_back(duplicate(fd));
        Ends failure = make_pipe();
        UniqueFd failure_in = duplicate(failure.second.get());
        failure.second.reset();
        const std::vector<char *> argv = pointers(argv_);
        const std::string &program = program_.empty() ? argv_.front() : program_;
        const pid_t parent = getpid();
        const pid_t pid = must(fork(), "fork");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(126);
            become(argv.data(), program.c_str(), held, passed);
            const int code = errno;
            [[maybe_unused]] const ssize_t written = write(failure_in.get(), &code, sizeof(code));
            _exit(127);
        }
        Child child(pid, std::move(kept));
        failure_in.reset();
        int code = 0;
        if (read(failure.first.get(), &code, sizeof(code)) == sizeof(code))
            throw std::system_error(code, std::generic_category(), "run " + program);
        return child;
    }

private:
    static constexpr int unset = -1;

    static std::vector<char *> pointers(const std::vector<std::string> &strings)
    {
        std::vector<char *> result;
        for (const std::string &string : strings)
            result.push_back(const_cast<char *>(string.c_str()));
        result.push_back(nullptr);
        return result;
    }

    // In the new process; returns only when it could not become the program.
    void become(char *const *argv, const char *program, const UniqueFd *held, const std::vector<UniqueFd> &passed) const
    {
        constexpr int passed_first = 3;
        std::string names;
        for (size_t i = 0; i < passed.size(); ++i) {
            dup2(passed[i].get(), passed_first + int(i));
            names += (i > 0 ? ":" : "") + passed_[i].second;
        }
        if (!passed.empty()) {
            setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
            setenv("LISTEN_FDS", std::to_string(passed.size()).c_str(), 1);
            setenv("LISTEN_FDNAMES", names.c_str(), 1);
        }
        for (int i = 0; i < 3; ++i) {
            if (held[i])
                dup2(held[i].get(), i);
            else
                close(i);
        }
        // this program ignores SIGPIPE, and an ignored signal is inherited
        signal(SIGPIPE, SIG_DFL);
        for (const auto &[name, value] : env_)
            setenv(name.c_str(), value.c_str(), 1);
        const rlimit files{files_max_, files_max_};
        if (files_max_ != 0 && setrlimit(RLIMIT_NOFILE, &files) != 0)
            return;
        if (uid_ != 0 && (setgroups(0, nullptr) != 0 || setgid(gid_t(uid_)) != 0 || setuid(uid_) != 0))
            return;
        execvp(program, argv);
    }

    std::vector<std::string> argv_;
    std::string program_;
    std::map<std::string, std::string> env_;
    int stdio_[3] = {unset, unset, unset};
    std::vector<std::pair<int, std::string>> passed_;
    rlim_t files_max_ = 0;
    uid_t uid_ = 0;
};

} // namespace sluice::test
