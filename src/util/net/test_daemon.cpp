// SPDX-License-Identifier: LGPL-2.1-or-later

// A daemon for autostart_test: RECORD gets what it finds itself in; then, by MODE, it
// listens on SOCKET and accepts until it is killed, or waits for that without
// listening, or ends at once.
//
//     test_daemon MODE RECORD SOCKET

#include <csignal>
#include <fstream>
#include <string_view>

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

namespace {

void record(const char *path)
{
    std::ofstream out(path, std::ios::app);
    char text[4096] = "";
    out << "pid " << getpid() << "\nparent " << getppid() << "\nsession " << getsid(0) << "\n";
    out << "cwd " << (getcwd(text, sizeof text) != nullptr ? text : "?") << "\n";
    for (int fd = 0; fd < 1024; ++fd) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, text, sizeof text - 1);
        if (size < 0)
            continue;
        text[size] = '\0';
        if (std::string_view(text) != path)
            out << "fd " << fd << " " << text << "\n";
    }
    for (char **variable = environ; *variable != nullptr; ++variable)
        out << "env " << *variable << "\n";
    struct sigaction action;
    sigaction(SIGPIPE, nullptr, &action);
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, nullptr, &blocked);
    out << "sigpipe " << (action.sa_handler == SIG_DFL ? "default" : "ignored") << "\n";
    out << "sigusr1 " << (sigismember(&blocked, SIGUSR1) ? "blocked" : "open") << "\n";
    out << "end\n";
}

} // namespace

int main(int argc, char **argv)
{
    alarm(60); // should the test forget us
    if (argc != 4)
        return 64;
    std::string_view mode = argv[1];
    record(argv[2]);
    if (mode == "end")
        return 1;
    if (mode == "deaf") {
        for (;;)
            pause();
    }
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::string_view(argv[3]).copy(at.sun_path, sizeof at.sun_path - 1);
    unlink(argv[3]);
    int server = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(server, reinterpret_cast<sockaddr *>(&at), sizeof at) != 0 || listen(server, 16) != 0)
        return 1;
    for (;;) {
        int client = accept(server, nullptr, nullptr);
        send(client, "hello", 5, MSG_NOSIGNAL); // it may be gone already
        close(client);
    }
}
