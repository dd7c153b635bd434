// SPDX-License-Identifier: LGPL-2.1-or-later

#include "soak_run.hpp"

#include <algorithm>
#include <cstring>

#include "proxy_backend.hpp"
#include "util/base/clock.hpp"

namespace sluice::bench {

namespace {

constexpr int faults_shown_max = 40;
// A proxy that stands still may still have timers; one that spins takes a whole core.
constexpr double idle_share_max = 0.05;

} // namespace

Soak::Soak(const SoakOptions &options)
    : options_(options), epoll_(must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      arrivals_(must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")), random_(options.seed)
{
    epoll_event event{EPOLLIN, {.ptr = nullptr}};
    must(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, arrivals_.get(), &event), "epoll_ctl");
    for (const Path path : options.paths) {
        auto line = std::make_unique<Line>();
        line->path = path;
        line->upstream = Endpoint::unused(path.upstream, folder_ / ("upstream-" + path.name()));
        lines_.push_back(std::move(line));
    }
}

void Soak::open(Line &line)
{
    line.subject = std::make_unique<Subject>(options_.contestant, line.path, line.upstream);
    bool works = false;
    {
        const Backend backend(line.upstream);
        works =
            eventually([&] { return answers(line) || !line.subject->alive(); }, Deadline{20}) && line.subject->alive();
    }
    if (!works && !line.subject->alive() && line.subject->exit_status() == 77)
        throw NotInstalled(line.subject->errors());
    if (!works)
        throw std::runtime_error(fmt::format("{} does not work on {}: {}", options_.contestant.name, line.path.name(),
                                             line.subject->errors()));
    listen(line);
}

bool Soak::answers(Line &line)
{
    const UniqueFd fd = try_connect(line.subject->endpoint());
    const timeval bound{5, 0};
    return fd && setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound)) == 0 &&
           exchange(fd.get(), Message{});
}

void Soak::listen(Line &line)
{
    line.listener = listen_at(line.upstream);
    epoll_event event{EPOLLIN, {.ptr = nullptr}};
    must(epoll_ctl(arrivals_.get(), EPOLL_CTL_ADD, line.listener.get(), &event), "epoll_ctl");
}

void Soak::begin(Line &line, int64_t now)
{
    UniqueFd client = make_socket(line.subject->endpoint(), SOCK_NONBLOCK);
    const Endpoint &to = line.subject->endpoint();
    if (connect(client.get(), to.sockaddr_ptr(), to.size) != 0 && errno != EINPROGRESS) {
        if (errno != EAGAIN) // the backlog of a unix socket is full: later, then
            fault(line, fmt::format("error: connect: {}", std::strerror(errno)));
        return;
    }
    const Plan plan = Plan::random(options_.seed, next_id_++, options_.bytes_max);
    auto conversation = std::make_unique<Conversation>(epoll_.get(), plan, options_.seed, now);
    conversation->start(std::move(client));
    if (!line.listener)
        conversation->upstream_died();
    conversation->step(nullptr, 0, now);
    line.conversations.emplace(plan.id, std::move(conversation));
    ++begun_;
    ++endings_[plan.ending];
}

void Soak::accept(Line &line, int64_t now)
{
    while (line.listener) {
        UniqueFd fd{accept4(line.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
        if (!fd)
            break;
        epoll_event event{EPOLLIN, {.ptr = nullptr}};
        must(epoll_ctl(arrivals_.get(), EPOLL_CTL_ADD, fd.get(), &event), "epoll_ctl");
        line.unknown.push_back({std::move(fd), {}, 0, now});
    }
    line.unknown.remove_if([&](Line::Unknown &unknown) { return identify(line, unknown, now); });
}

// Whether there is nothing more to wait for.
bool Soak::identify(Line &line, Line::Unknown &unknown, int64_t now)
{
    const ssize_t count =
        recv(unknown.fd.get(), unknown.header.data() + unknown.filled, unknown.header.size() - unknown.filled, 0);
    if (count < 0 && errno == EAGAIN)
        return false;
    if (count <= 0) {
        ++silent_;
        return true;
    }
    unknown.filled += size_t(count);
    if (unknown.filled < unknown.header.size())
        return false;
    uint64_t id = 0;
    std::memcpy(&id, unknown.header.data(), sizeof(id));
    must(epoll_ctl(arrivals_.get(), EPOLL_CTL_DEL, unknown.fd.get(), nullptr), "epoll_ctl");
    const auto found = line.conversations.find(id);
    if (found == line.conversations.end()) {
        // of one that was cut off before we came to accept it
        if (id == 0 || id >= next_id_)
            fault(line, fmt::format("damaged: a conversation says that its number is {}", id));
        return true;
    }
    if (found->second->attached()) {
        fault(line, fmt::format("damaged: conversation {} arrived twice", id));
        return true;
    }
    found->second->attach(std::move(unknown.fd));
    found->second->step(nullptr, 0, now);
    return true;
}

void Soak::live_and_die(Line &line, int64_t now)
{
    if (line.listener && line.dies_usec == 0)
        line.dies_usec = now + int64_t(random_() % 6'000'000) + 2'000'000;
    if (line.listener && now >= line.dies_usec)
        die(line, now);
}

// What a kill does: all descriptors are closed at once, what nobody has read is lost.
void Soak::die(Line &line, int64_t now)
{
    ++deaths_;
    line.listener.reset();
    line.unknown.clear();
    for (auto &[id, conversation] : line.conversations) {
        conversation->upstream_died();
        conversation->step(nullptr, 0, now);
    }
    line.dies_usec = 0;
    line.back_usec = now + int64_t(random_() % 400'000);
}

void Soak::bury(Line &line, int64_t now)
{
    for (auto &[id, conversation] : line.conversations) {
        conversation->step(nullptr, 0, now);
        if (conversation->stuck(now, int64_t(options_.stuck_s * 1e6))) {
            fault(line, fmt::format("stuck: conversation {} ({}): {}", id, conversation->plan().text(),
                                    conversation->state()));
            conversation->cut();
            conversation->give_up();
        }
    }
    for (Line::Unknown &unknown : line.unknown) {
        if (now - unknown.since_usec <= int64_t(options_.stuck_s * 1e6))
            continue;
        fault(line, "stuck: a connection to the upstream on which nothing comes, not even an end");
        unknown.fd.reset();
    }
    line.unknown.remove_if([](const Line::Unknown &unknown) { return !unknown.fd; });
    std::erase_if(line.conversations, [&](auto &entry) {
        Conversation &conversation = *entry.second;
        if (!conversation.over())
            return false;
        bytes_ += conversation.bytes();
        cut_ += conversation.is_cut();
        for (const std::string &text : conversation.faults())
            fault(line, fmt::format("{}, conversation {} ({}): {}", text, entry.first, conversation.plan().text(),
                                    conversation.state()));
        return true;
    });
}

void Soak::turn(bool begin_new, bool disturb)
{
    std::array<epoll_event, 128> events;
    const int count = epoll_wait(epoll_.get(), events.data(), int(events.size()), 2);
    int64_t now = monotonic_usec();
    bool arrivals = false;
    for (int i = 0; i < count; ++i) {
        const auto *ear = static_cast<const Conversation::Ear *>(events[size_t(i)].data.ptr);
        arrivals = arrivals || !ear;
        if (ear)
            ear->conversation->step(ear, events[size_t(i)].events, now);
    }
    if (arrivals)
        for (auto &line : lines_)
            accept(*line, now);
    // pauses end, upstreams die: every few milliseconds is often enough
    if (now - looked_usec_ < 2000)
        return;
    looked_usec_ = now;
    for (auto &line : lines_) {
        if (line->dead)
            continue;
        if (!line->subject->alive()) {
            line->dead = true;
            fault(*line, "died: " + line->subject->ending() + line->subject->errors());
            for (auto &[id, conversation] : line->conversations) {
                conversation->cut();
                conversation->give_up();
            }
            line->unknown.clear();
            bury(*line, now);
            continue;
        }
        if (!line->listener && now >= line->back_usec)
            listen(*line);
        if (disturb)
            live_and_die(*line, now);
        bury(*line, now);
        // while there is no upstream each of them is over at once
        if (!line->listener && random_() % 16 != 0)
            continue;
        while (begin_new && line->conversations.size() < size_t(options_.clients)) {
            const size_t before = line->conversations.size();
            begin(*line, now);
            if (line->conversations.size() == before || !line->listener)
                break;
        }
    }
}

bool Soak::empty() const
{
    return std::all_of(lines_.begin(), lines_.end(),
                       [](const auto &line) { return line->conversations.empty() && line->unknown.empty(); });
}

void Soak::converse(double seconds, bool begin_new, bool disturb)
{
    const Deadline deadline{seconds};
    int64_t still_usec = 0;
    while (!deadline.passed() && (begin_new || !empty())) {
        turn(begin_new, disturb);
        if (!disturb)
            continue;
        if (still_usec == 0)
            still_usec = monotonic_usec() + 3'000'000 + int64_t(random_() % 6'000'000);
        if (monotonic_usec() >= still_usec && deadline.left_usec() > 2'000'000) {
            stand_still();
            still_usec = 0;
        }
    }
}

// Nobody reads, writes or accepts. The proxy moves what it can, and then has to wait as well.
void Soak::stand_still()
{
    const int64_t start = monotonic_usec();
    ++stood_still_;
    expect_rest("while nobody moved", 0.5);
    const int64_t lost = monotonic_usec() - start;
    for (auto &line : lines_)
        for (auto &[id, conversation] : line->conversations)
            conversation->forgive(lost);
}

void Soak::expect_rest(const char *when, double seconds)
{
    const auto used = [&](double window_s) {
        std::vector<double> before, share;
        for (auto &line : lines_)
            before.push_back(line->subject->cpu_s());
        const int64_t start = monotonic_usec();
        poll(nullptr, 0, int(window_s * 1000));
        const double passed = double(monotonic_usec() - start) / 1e6;
        for (size_t i = 0; i < lines_.size(); ++i)
            share.push_back((lines_[i]->subject->cpu_s() - before[i]) / passed);
        return share;
    };
    const auto rests = [](double share) { return share <= idle_share_max; };
    // it may have had something left to do
    std::vector<double> share;
    const Deadline deadline{10};
    do
        share = used(0.1);
    while (!std::all_of(share.begin(), share.end(), rests) && !deadline.passed());
    share = used(seconds);
    for (size_t i = 0; i < lines_.size(); ++i)
        if (!rests(share[i]))
            fault(*lines_[i], fmt::format("spins: {:.0f} % of a core {}", share[i] * 100, when));
}

Soak::Line::Held Soak::settle(Line &line, std::optional<Line::Held> wanted)
{
    const auto look = [&] {
        const size_t pipes = line.subject->pipe_descriptors();
        return Line::Held{line.subject->descriptors() - pipes, pipes, line.subject->memory_bytes()};
    };
    // the last close() of ours may not have come through yet
    Line::Held held = look();
    eventually(
        [&] {
            const Line::Held before = std::exchange(held, look());
            return wanted ? held.descriptors <= wanted->descriptors : held.descriptors == before.descriptors;
        },
        Deadline{10});
    return held;
}

void Soak::compare(Line &line)
{
    const Line::Held start = line.at_start;
    const Line::Held end = settle(line, start);
    fmt::print("{}: descriptors {} -> {}, pipes' {} -> {}, memory {:.0f} -> {:.0f} KiB\n", line.path.name(),
               start.descriptors, end.descriptors, start.pipe_descriptors, end.pipe_descriptors,
               double(start.memory_bytes) / 1024, double(end.memory_bytes) / 1024);
    const auto limit = [&](const char *what, uint64_t before, uint64_t slack, uint64_t after) {
        if (after > before + slack)
            fault(line, fmt::format("leak: {} {}, {} at the start", after, what, before));
    };
    limit("descriptors", start.descriptors, 0, end.descriptors);
    limit("descriptors of pipes", start.pipe_descriptors, options_.pipe_descriptors_slack(), end.pipe_descriptors);
    limit("bytes of memory", start.memory_bytes, options_.memory_slack_bytes, end.memory_bytes);
}

bool Soak::run()
{
    for (auto &line : lines_)
        open(*line);
    // Until then a proxy may make what it keeps: pools, tables, heap.
    const double warm_up_s = std::clamp(options_.seconds / 8, 2.0, 20.0);
    const double drain_s = 4 * options_.stuck_s;
    converse(warm_up_s, true, true);
    converse(drain_s, false, false);
    for (auto &line : lines_)
        line->at_start = settle(*line, std::nullopt);
    converse(options_.seconds - warm_up_s, true, true);
    converse(drain_s, false, false);
    for (auto &line : lines_) {
        if (!line->conversations.empty() || !line->unknown.empty())
            fault(*line, "stuck: conversations are left that never end");
        if (!line->dead)
            compare(*line);
    }
    expect_rest("when all was over", 2);
    summary();
    return options_.expect.empty() ? faults_ == 0 : kinds_.contains(options_.expect);
}

void Soak::fault(const Line &line, const std::string &text)
{
    ++kinds_[text.substr(0, text.find(':'))];
    if (++faults_ <= faults_shown_max || line.dead)
        fmt::print("{} {}: {}\n", options_.contestant.name, line.path.name(), text);
    if (faults_ == faults_shown_max)
        fmt::print("further ones are only counted\n");
    std::fflush(stdout);
}

void Soak::summary() const
{
    fmt::print("{}: {} conversations, {:.1f} GB, {} cut off, {} of the upstream's ends, {} silent; stood still {} "
               "times; seed {}\n",
               options_.contestant.name, begun_, double(bytes_) / 1e9, cut_, deaths_, silent_, stood_still_,
               options_.seed);
    for (const auto &[ending, count] : endings_)
        fmt::print("  {:<26} {}\n", name_of(ending), count);
    fmt::print("{} faults", faults_);
    for (const auto &[kind, count] : kinds_)
        fmt::print(", {} {}", kind, count);
    fmt::print("\n");
}

} // namespace sluice::bench
