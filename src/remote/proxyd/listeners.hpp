// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

// The sockets that are listened on: those that were passed in, matched by name, and
// those that we make. They outlive a reload that keeps them, so that no client is
// refused; a set of them is complete or is not made at all.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "remote/proxyd/config/config.hpp"
#include "util/net/activation.hpp"
#include "util/net/listen.hpp"

namespace sluice::proxyd {

// What one line of `listen` stands for.
struct Binding {
    ListenConfig config;
    std::shared_ptr<Listener> listener; // shared with the set that a reload replaces
    bool passed = false;                // it stays when we go
    std::string stored_as;              // its name in the manager's store of descriptors
};

// All of one service.
using Bindings = std::vector<Binding>;

class Listeners {
public:
    // What was passed at the start. Sockets that an earlier process of ours has left in
    // the manager's store are taken up again where the configuration still wants them.
    explicit Listeners(std::vector<PassedFd> passed);

    // The sockets of every service, by name; `admin` is the admin socket's key. Nothing
    // has changed where it fails: all that is wrong is in the errors.
    static constexpr const char *admin = "";
    using Set = std::map<std::string, Bindings>;
    tl::expected<Set, std::vector<std::string>> open(const Config &config, const Set &current);

    // Names of passed sockets that `set` does not use.
    std::vector<std::string> unused(const Set &set) const;

private:
    struct Passed {
        std::string name;
        std::string address;
        bool stored = false;
        std::shared_ptr<Listener> listener;
    };

    void open_passed(const std::string &owner, const ListenConfig &config, const Config &whole, Bindings &into,
                     std::vector<std::string> &errors);
    void open_own(const std::string &owner, const ListenConfig &config, const Set &current, Bindings &into,
                  std::vector<std::string> &errors);

    std::vector<Passed> passed_;
    std::vector<std::string> broken_; // passed ones that cannot be listened on
};

} // namespace sluice::proxyd
