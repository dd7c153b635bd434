// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The built sluice, run on the admin socket of a made-up daemon that is a process of its
// own. SLUICE and SLUICE_FAKE_DAEMON in the environment say where the two programs are.

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <support/child.hpp>

namespace sluice::cli {

struct Ran {
    int code = -1;
    std::string output;
    std::string errors;
};

class CliTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        program = environment("SLUICE");
        start_daemon();
    }

    static std::string environment(const char *name)
    {
        const char *value = std::getenv(name);
        if (!value)
            throw std::runtime_error(std::string(name) + " is not set");
        return value;
    }

    void start_daemon()
    {
        test::Ends input = test::make_pipe();
        test::Ends output = test::make_pipe();
        daemon = test::Command({environment("SLUICE_FAKE_DAEMON"), path})
                     .input(input.first.get())
                     .output(output.second.get())
                     .start();
        daemon_input = std::move(input.second);
        daemon_output = std::move(output.first);
        told.clear();
        ASSERT_TRUE(hears("ready")) << daemon.errors();
    }
    void stop_daemon()
    {
        daemon_input.reset();
        ASSERT_TRUE(daemon.wait());
    }

    // The daemon has told a line like this; each is looked at once.
    bool hears(const std::string &line)
    {
        const test::Deadline deadline;
        for (;;) {
            const size_t end = told.find('\n');
            if (end != std::string::npos) {
                const std::string first = told.substr(0, end);
                told.erase(0, end + 1);
                if (first == line)
                    return true;
                continue;
            }
            char block[4096];
            if (!test::wait_for(daemon_output.get(), POLLIN, deadline))
                return false;
            const ssize_t count = read(daemon_output.get(), block, sizeof block);
            if (count <= 0)
                return false;
            told.append(block, static_cast<size_t>(count));
        }
    }

    test::Command command(std::vector<std::string> args) const
    {
        args.insert(args.begin(), program);
        test::Command made(args);
        made.env("SLUICE_ADMIN", "unix:" + path).env("LC_ALL", "C.UTF-8").env("LANGUAGE", "");
        return made;
    }
    static Ran finish(test::Command made)
    {
        const UniqueFd output(test::must(memfd_create("output", MFD_CLOEXEC), "memfd_create"));
        test::Child child = made.output(output.get()).start();
        const auto exit = child.wait();
        Ran ran;
        ran.code = exit ? exit->code : -1;
        ran.errors = child.errors();
        char block[65536];
        for (ssize_t count;
             (count = pread(output.get(), block, sizeof block, static_cast<off_t>(ran.output.size()))) > 0;)
            ran.output.append(block, static_cast<size_t>(count));
        return ran;
    }
    Ran run(std::vector<std::string> args) const { return finish(command(std::move(args))); }

    std::string program;
    test::TempDir dir;
    std::string path = dir / "admin.sock";
    test::Child daemon;
    UniqueFd daemon_input, daemon_output;
    std::string told;
};

} // namespace sluice::cli
