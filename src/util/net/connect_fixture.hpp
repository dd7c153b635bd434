// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// What the tests of connecting have in common: a loop, expectations, and servers.

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "util/net/connect.hpp"
#include "util/net/test_support.hpp"

namespace sluice {

class Connect : public ::testing::Test {
protected:
    Connect()
    {
        options.timeout = std::chrono::seconds{60}; // far more than anything here takes
        options.on_step = [this](const char *step, const std::string &) { steps.push_back(step); };
    }

    Result<UniqueFd> connect(const Address &address) { return run(loop, connect_to(loop, address, options)); }

    // For answers that are known at once: without a single turn of the loop.
    Result<UniqueFd> connect_at_once(const Address &address)
    {
        auto task = connect_to(loop, address, options);
        task.start();
        if (!task.done())
            throw std::runtime_error("did not end at once");
        return task.take();
    }

    void expect_error(const Result<UniqueFd> &result, int code, const std::string &says)
    {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, code) << result.error().message;
        EXPECT_NE(result.error().message.find(says), std::string::npos) << result.error().message;
    }

    void expect_good(const Result<UniqueFd> &result)
    {
        ASSERT_TRUE(result) << result.error().message;
        EXPECT_NE(fcntl(result->get(), F_GETFL) & O_NONBLOCK, 0);
        EXPECT_NE(fcntl(result->get(), F_GETFD) & FD_CLOEXEC, 0);
        EXPECT_EQ(loop.stats().handles, 0u);
        EXPECT_EQ(loop.stats().timeouts, 0u);
    }

    Loop loop;
    ConnectOptions options;
    std::vector<std::string> steps;
};

// A TCP socket on loopback; `backlog` < 0: bound, so that nobody else takes the port, but not listening.
struct TcpServer {
    explicit TcpServer(int backlog, const char *host = "127.0.0.1")
    {
        Loop loop;
        auto found = run(loop, resolve(loop, TcpAddress{host, "0"}, INT64_MAX));
        if (!found)
            throw std::runtime_error(found.error().message);
        SocketAddress at = found->at(0);
        fd.reset(socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (bind(fd.get(), at.get(), at.size) != 0 || (backlog >= 0 && listen(fd.get(), backlog) != 0))
            throw std::runtime_error(std::string("server: ") + std::strerror(errno));
        address = local_address(fd.get());
        std::string text = to_string(address);
        name = TcpAddress{host, text.substr(text.rfind(':') + 1)};
    }
    UniqueFd fd;
    SocketAddress address;
    TcpAddress name;
};

} // namespace sluice
