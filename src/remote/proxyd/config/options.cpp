// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/options.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include <glib.h>

#include "remote/proxyd/config/address_fields.hpp"
#include "remote/proxyd/config/arguments.hpp"
#include "remote/proxyd/config/check.hpp"
#include "remote/proxyd/config/time_span.hpp"
#include "remote/proxyd/config/upstream_address.hpp"
#include "util/base/parse.hpp"
#include "util/base/printable.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

using std::chrono::microseconds;

// Exiting at once would leave no time to take the client that we were started for.
constexpr microseconds exit_idle_time_min = std::chrono::seconds{1};

struct ContextFree {
    void operator()(GOptionContext *context) const { g_option_context_free(context); }
};

// What GOption fills in; values are checked afterwards, all in one place.
struct Raw {
    gboolean check = FALSE;
    gboolean version = FALSE;
    char *connections_max = nullptr;
    char *exit_idle_time = nullptr;
    char *proxy_protocol = nullptr;
    char *config = nullptr;
    char *drain_timeout = nullptr;
    char *workers = nullptr;
    char *admin = nullptr;
    char *log_level = nullptr;
    char **listen = nullptr;

    Raw() = default;
    Raw(const Raw &) = delete;
    Raw &operator=(const Raw &) = delete;
    ~Raw()
    {
        for (char *text :
             {connections_max, exit_idle_time, proxy_protocol, config, drain_timeout, workers, admin, log_level})
            g_free(text);
        g_strfreev(listen);
    }
};

using Done = tl::expected<void, Error>;

tl::unexpected<Error> invalid(std::string message)
{
    return tl::unexpected<Error>(Error{EINVAL, std::move(message)});
}

template <class T>
Done set_number(T &number, const char *option, const char *text, unsigned max)
{
    if (!text)
        return {};
    auto parsed = parse_number<unsigned>(text, 1, max);
    if (!parsed)
        return invalid(format(_("{}: \"{}\" is no number: write one from 1 to {}"), option, printable(text), max));
    number = *parsed;
    return {};
}

// `infinity` is what the option takes for no limit.
Done set_time(std::optional<microseconds> &time, const char *option, const char *text, microseconds infinity)
{
    if (!text)
        return {};
    auto parsed = parse_time_span(text);
    if (parsed == infinite_time)
        time = infinity;
    else if (parsed && *parsed <= config_time_max)
        time = *parsed;
    else
        return invalid(format(_("{}: \"{}\" is no time up to 1000h: write seconds, a time as in \"5min 20s\", or "
                                "infinity"),
                              option, printable(text)));
    return {};
}

template <class T, class Target>
Done set_word(Target &target, const char *option, const char *text, const std::vector<std::pair<std::string, T>> &known)
{
    if (!text)
        return {};
    std::vector<std::string> words;
    for (const auto &[word, value] : known) {
        words.push_back(word);
        if (word == text) {
            target = value;
            return {};
        }
    }
    return invalid(format(_("{}: \"{}\" is not known: write {}"), option, printable(text), list_words(words)));
}

Done set_listen(std::vector<ListenConfig> &listen, char **texts)
{
    for (char **text = texts; text && *text; ++text) {
        auto parsed = parse_listen(*text);
        if (!parsed)
            return invalid("--listen: " + parsed.error().message);
        listen.push_back(*parsed);
    }
    return {};
}

Done set_admin(std::vector<ListenConfig> &admin, const char *text)
{
    if (!text)
        return {};
    auto parsed = parse_listen(text);
    if (!parsed)
        return invalid("--admin: " + parsed.error().message);
    const auto *address = std::get_if<Address>(&parsed->at);
    bool is_unix =
        !address || std::holds_alternative<UnixPath>(*address) || std::holds_alternative<UnixAbstract>(*address);
    if (!is_unix)
        return invalid(format(_("--admin: {} is no unix socket: others take a configuration file, which says in "
                                "[admin] who may use them"),
                              printable(text)));
    admin.push_back(*parsed);
    return {};
}

Done set_values(Options &options, const Raw &raw)
{
    options.check = raw.check;
    options.show_version = raw.version;
    options.config_path = raw.config ? raw.config : "";
    return set_number(options.service.limits.connections, "--connections-max", raw.connections_max, connections_max)
        .and_then([&] { return set_number(options.workers, "--workers", raw.workers, workers_max); })
        .and_then([&] { return set_time(options.exit_idle_time, "--exit-idle-time", raw.exit_idle_time, {}); })
        .and_then([&] {
            // "0" is as soon as possible here, and "never" in the configuration
            if (raw.exit_idle_time && parse_time_span(raw.exit_idle_time) != infinite_time)
                options.exit_idle_time = std::max(*options.exit_idle_time, exit_idle_time_min);
            return set_time(options.drain_timeout, "--drain-timeout", raw.drain_timeout, config_time_max);
        })
        .and_then([&] {
            return set_word<ProxyProtocol>(options.service.send_proxy, "--proxy-protocol", raw.proxy_protocol,
                                           {{"v1", ProxyProtocol::v1}, {"v2", ProxyProtocol::v2}});
        })
        .and_then([&] {
            return set_word<LogLevel>(options.log_level, "--log-level", raw.log_level,
                                      {{"error", LogLevel::error},
                                       {"warning", LogLevel::warning},
                                       {"info", LogLevel::info},
                                       {"debug", LogLevel::debug}});
        })
        .and_then([&] { return set_listen(options.service.listen, raw.listen); })
        .and_then([&] { return set_admin(options.admin, raw.admin); });
}

// Which of the two forms it is, and whether all of it belongs to that form.
Done set_form(Options &options, const Raw &raw, const std::vector<std::string> &words)
{
    if (words.size() > 1)
        return invalid(format(_("\"{}\" is one argument too many"), printable(words[1])));
    if (options.check && !words.empty()) {
        if (raw.config)
            return invalid(format(_("\"{}\" is one argument too many"), printable(words[0])));
        options.config_path = words[0];
        return {};
    }
    if (options.check || raw.config) {
        if (!raw.config)
            return invalid(_("--check: no file: say which one to check"));
        if (!words.empty())
            return invalid(format(_("\"{}\": with --config, all services are in the file"), printable(words[0])));
        const std::pair<const char *, bool> of_address[] = {{"--connections-max", raw.connections_max},
                                                            {"--proxy-protocol", raw.proxy_protocol},
                                                            {"--listen", raw.listen}};
        for (auto [option, given] : of_address) {
            if (given)
                return invalid(format(_("{}: with --config, all services are in the file"), option));
        }
        return {};
    }
    if (words.empty())
        return invalid(_("no address: say where to connect to, or --config=FILE"));
    auto address = parse_upstream(words[0]);
    if (!address)
        return invalid(address.error().message);
    options.service.name = "default";
    options.service.connect = {*address};
    if (options.service.listen.empty())
        options.service.listen.emplace_back(); // every socket that is passed in
    return {};
}

void adjust(Config &config, const Options &options)
{
    config.workers = options.workers.value_or(config.workers);
    config.drain_timeout = options.drain_timeout.value_or(config.drain_timeout);
    config.exit_idle_time = options.exit_idle_time.value_or(config.exit_idle_time);
    config.log_level = options.log_level.value_or(config.log_level);
    if (!options.admin.empty())
        config.admin.listen = options.admin;
}

} // namespace

Result<Options> parse_options(int argc, char **argv)
{
    Raw raw;
    const GOptionEntry entries[] = {
        {"connections-max", 'c', 0, G_OPTION_ARG_STRING, &raw.connections_max,
         N_("Take at most N connections at a time (default 256)"), N_("N")},
        {"exit-idle-time", 0, 0, G_OPTION_ARG_STRING, &raw.exit_idle_time,
         N_("Exit after TIME without a connection (default infinity)"), N_("TIME")},
        {"proxy-protocol", 0, 0, G_OPTION_ARG_STRING, &raw.proxy_protocol,
         N_("Tell the upstream who the client is: v1 or v2 of the PROXY protocol"), N_("VERSION")},
        {"listen", 0, 0, G_OPTION_ARG_STRING_ARRAY, &raw.listen,
         N_("Listen there (default: the sockets that are passed in); may be repeated"), N_("ADDRESS")},
        {"config", 'f', 0, G_OPTION_ARG_FILENAME, &raw.config,
         N_("Serve what FILE and FILE.d/*.toml say, in the place of ADDRESS"), N_("FILE")},
        {"check", 0, 0, G_OPTION_ARG_NONE, &raw.check, N_("Say what is wrong with the file that follows, and exit"),
         nullptr},
        {"workers", 0, 0, G_OPTION_ARG_STRING, &raw.workers, N_("Use N threads (default 1)"), N_("N")},
        {"drain-timeout", 0, 0, G_OPTION_ARG_STRING, &raw.drain_timeout,
         N_("When told to end, give connections TIME (default 30s)"), N_("TIME")},
        {"admin", 0, 0, G_OPTION_ARG_STRING, &raw.admin, N_("Answer sluice on this unix socket"), N_("ADDRESS")},
        {"log-level", 0, 0, G_OPTION_ARG_STRING, &raw.log_level,
         N_("Report error, warning, info or debug (default info)"), N_("LEVEL")},
        {"version", 'V', 0, G_OPTION_ARG_NONE, &raw.version, N_("Show the version and exit"), nullptr},
        {},
    };
    std::vector<OptionName> known{{"help", 'h', false}};
    for (const GOptionEntry *entry = entries; entry->long_name; ++entry)
        known.push_back({entry->long_name, entry->short_name, entry->arg != G_OPTION_ARG_NONE});
    std::vector<std::string> arguments = spell_out({argv + std::min(argc, 1), argv + argc}, known);

    std::unique_ptr<GOptionContext, ContextFree> context(g_option_context_new(N_("ADDRESS")));
    g_option_context_set_translation_domain(context.get(), "sluice");
    g_option_context_add_main_entries(context.get(), entries, "sluice");
    g_option_context_set_summary(
        context.get(), N_("Take connections on sockets that systemd passes in, and join them to another socket."));
    g_option_context_set_description(context.get(),
                                     N_("ADDRESS is /PATH, @NAME, HOST:PORT, HOST (port 80), unix:/PATH, unix:@NAME,\n"
                                        "tcp:HOST:PORT or vsock:CID:PORT."));
    set_up_translation(); // of the help, and of what GOption itself has to say
    std::string program = argc > 0 ? argv[0] : "sluiced";
    std::vector<char *> rewritten{program.data()};
    for (std::string &argument : arguments)
        rewritten.push_back(argument.data());
    rewritten.push_back(nullptr);
    int left = static_cast<int>(rewritten.size()) - 1;
    char **words = rewritten.data();
    GError *error = nullptr;
    if (!g_option_context_parse(context.get(), &left, &words, &error)) {
        std::string message = error->message;
        g_error_free(error);
        return invalid(message);
    }
    Options options;
    auto done = set_values(options, raw);
    if (done && options.show_version)
        return options;
    // "--" is for those whose address begins with a dash
    int first = left > 1 && std::string_view(words[1]) == "--" ? 2 : 1;
    if (done)
        done = set_form(options, raw, {words + first, words + left});
    if (!done)
        return tl::unexpected(done.error());
    return options;
}

tl::expected<Config, std::vector<Problem>> load_config(const Options &options)
{
    auto adjust_it = [&options](Config &config) { adjust(config, options); };
    if (!options.config_path.empty())
        return read_config(options.config_path, adjust_it);
    Config config;
    config.services.push_back(options.service);
    adjust_it(config);
    auto problems = check_config(config);
    if (!problems.empty())
        return tl::unexpected(std::move(problems));
    return config;
}

} // namespace sluice::proxyd
