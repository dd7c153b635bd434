// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// A libvirtd of the test's own: configuration, state, log and socket in a folder that
// goes with it, no authentication, no privileges (it runs as nobody where the test is
// root), so that it meets no other daemon of the machine. Killed with its owner.

#include <string>

#include "support/child.hpp"

namespace sluice::test {

class Libvirtd {
public:
    // Starts the daemon and waits until it answers; throws if it does not.
    Libvirtd();
    ~Libvirtd();

    // Path of the program, empty if it is not installed.
    static std::string program();

    std::string socket_path() const { return dir_ / "socket/libvirt-sock"; }
    // A folder that the daemon may write to.
    std::string pool_path() const { return dir_ / "pool"; }

    void stop() { child_.kill(SIGSTOP); }
    void resume() { child_.kill(SIGCONT); }
    void kill();

private:
    bool answers() const;

    TempDir dir_;
    Child child_;
};

// URI of a driver behind a daemon's socket, e.g. ("test", "/default", path).
std::string remote_uri(const std::string &driver, const std::string &path, const std::string &socket);

} // namespace sluice::test
