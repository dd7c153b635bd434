// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A running admin server for tests, on a unix path and on tcp, in the test's own loop;
// clients of it: curl, and sockets on which the test writes what it likes.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <support/child.hpp>

#include "remote/proxyd/admin/admin_server.hpp"
#include "remote/proxyd/admin/fake_control.hpp"

namespace sluice::proxyd {

class AdminServerTest : public ::testing::Test {
protected:
    struct Answer {
        int status = -1; // of HTTP; -1 where curl has failed
        std::string headers;
        std::string body;
    };

    // A plain connection; what comes is kept until the end.
    class Raw {
    public:
        Raw(AdminServerTest &fixture, const SocketAddress &at) : test_(fixture)
        {
            fd_.reset(test::must(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
            test::must(connect(fd_.get(), at.get(), at.size), "connect"); // into the backlog
            test::set_nonblocking(fd_.get());
            watch_ = fixture.loop.watch(fd_.get(), SLUICE_EVENT_READABLE, [this](int) {
                char block[4096];
                const ssize_t count = read(fd_.get(), block, sizeof block);
                if (count > 0)
                    received.append(block, static_cast<size_t>(count));
                else if (count == 0 || errno != EAGAIN)
                    ended = true, watch_.remove();
            });
        }
        // As much as goes in; false where the server has closed.
        bool send(std::string_view text)
        {
            while (!text.empty()) {
                const ssize_t count = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
                if (count > 0)
                    text.remove_prefix(static_cast<size_t>(count));
                else if (errno == EAGAIN)
                    test_.loop.iterate();
                else
                    return false;
            }
            return true;
        }
        void half_close() { shutdown(fd_.get(), SHUT_WR); }
        void close() { watch_.remove(), fd_.reset(); }
        int status() const { return received.starts_with("HTTP/1.") ? std::stoi(received.substr(9)) : -1; }

        std::string received;
        bool ended = false;

    private:
        AdminServerTest &test_;
        UniqueFd fd_;
        Handle watch_;
    };

    void start(AdminLimits limits = {}, AdminServer::Permit permit = {})
    {
        std::vector<Listener> listeners;
        for (const Address &at : {Address(UnixPath{path}), Address(TcpAddress{"127.0.0.1", "0"})}) {
            ListenOptions options;
            options.mode = 0666; // of the path
            auto listener = listen_on(at, at.index() == 0 ? options : ListenOptions{});
            if (!listener)
                throw std::runtime_error(listener.error().message);
            listeners.push_back(std::move(*listener));
        }
        server.emplace(loop, std::move(listeners), std::move(permit), control, limits);
        tcp_address = server->addresses().at(1);
        tcp = to_string(tcp_address);
    }

    void turn_until(const std::function<bool()> &done)
    {
        const test::Deadline deadline;
        Timeout tick = loop.every(std::chrono::seconds{1}, [] {});
        while (!done()) {
            if (deadline.passed())
                throw std::runtime_error("it did not come");
            loop.iterate();
        }
    }

    // curl on the unix path, unless the arguments say otherwise.
    Answer curl(std::vector<std::string> args, uid_t user = 0)
    {
        test::Ends out = test::make_pipe();
        test::set_nonblocking(out.first.get());
        std::vector<std::string> command{"curl", "-sSi", "--noproxy", "*", "--unix-socket", path};
        if (std::find(args.begin(), args.end(), "--tcp") != args.end())
            command.resize(4);
        std::erase(args, "--tcp");
        command.insert(command.end(), args.begin(), args.end());
        test::Child child = test::Command(command).output(out.second.get()).as_user(user).start();
        out.second.reset();
        std::string text;
        bool ended = false;
        Handle watch = loop.watch(out.first.get(), SLUICE_EVENT_READABLE, [&](int) {
            char block[65536];
            const ssize_t count = read(out.first.get(), block, sizeof block);
            if (count > 0)
                text.append(block, static_cast<size_t>(count));
            else if (count == 0)
                ended = true;
        });
        turn_until([&] { return ended; });
        watch.remove();
        auto exit = child.wait();
        EXPECT_TRUE(exit && exit->code == 0) << child.errors();
        Answer answer;
        while (text.starts_with("HTTP/1.")) { // 100 Continue comes first
            const size_t end = std::min(text.find("\r\n\r\n"), text.size() - 4) + 4;
            answer.headers = text.substr(0, end);
            answer.status = std::stoi(text.substr(9));
            text.erase(0, end);
        }
        answer.body = text;
        return answer;
    }
    Answer get(const std::string &what) { return curl({"http://sluiced" + what}); }
    Answer post(const std::string &what) { return curl({"-X", "POST", "http://sluiced" + what}); }

    // It is well and has forgotten everybody.
    void expect_well()
    {
        turn_until([&] { return server->clients() == 0; });
        EXPECT_EQ(get("/").status, 200);
    }

    Loop loop;
    test::TempDir dir;
    std::string path = dir / "admin.sock";
    SocketAddress address = *to_socket_address(UnixPath{path});
    SocketAddress tcp_address;
    std::string tcp; // HOST:PORT
    FakeControl control;
    std::optional<AdminServer> server;
};

} // namespace sluice::proxyd
