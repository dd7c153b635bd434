// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/helper/options.hpp"

#include <bit>
#include <cerrno>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <glib.h>

#include "util/base/units.hpp"
#include "util/glib/i18n.hpp"

namespace sluice::helper {
namespace {

struct ContextFree {
    void operator()(GOptionContext *context) const { g_option_context_free(context); }
};

// What GOption fills in; values are checked afterwards, all in one place.
struct Raw {
    gboolean read_only = FALSE;
    gboolean version = FALSE;
    gboolean stats = FALSE;
    char *connect_timeout = nullptr;
    char *idle_timeout = nullptr;
    char *fin_timeout = nullptr;
    char *buffer_size = nullptr;
    char *log_level = nullptr;
    std::string progress; // empty: not given

    Raw() = default;
    Raw(const Raw &) = delete;
    Raw &operator=(const Raw &) = delete;
    ~Raw()
    {
        for (char *text : {connect_timeout, idle_timeout, fin_timeout, buffer_size, log_level})
            g_free(text);
    }
};

gboolean on_progress(const char *, const char *value, gpointer data, GError **)
{
    static_cast<Raw *>(data)->progress = value ? value : "auto";
    return TRUE;
}

Error invalid(std::string message)
{
    return {EINVAL, std::move(message)};
}

tl::expected<void, Error> set_time(std::chrono::microseconds &time, const char *option, const char *text)
{
    if (!text)
        return {};
    auto parsed = parse_duration(text);
    if (!parsed)
        return tl::unexpected(invalid(
            fmt::format(fmt::runtime(_("{}: \"{}\" is not a time: write seconds, or a number with ms, s, min or h")),
                        option, text)));
    time = *parsed;
    return {};
}

tl::expected<void, Error> set_buffer(size_t &bytes, const char *text)
{
    if (!text)
        return {};
    auto size = parse_size(text);
    if (!size || *size < buffer_bytes_min || *size > buffer_bytes_max)
        return tl::unexpected(
            invalid(fmt::format(fmt::runtime(_("--buffer-size: \"{}\" is not a size from 4K to 1M")), text)));
    bytes = std::bit_floor(static_cast<size_t>(*size));
    return {};
}

tl::expected<void, Error> set_log_level(LogLevel &level, const char *text)
{
    if (!text)
        return {};
    constexpr std::pair<std::string_view, LogLevel> known[] = {{"error", LogLevel::error},
                                                               {"warning", LogLevel::warning},
                                                               {"info", LogLevel::info},
                                                               {"debug", LogLevel::debug}};
    for (auto [name, value] : known) {
        if (name == text) {
            level = value;
            return {};
        }
    }
    return tl::unexpected(invalid(
        fmt::format(fmt::runtime(_("--log-level: \"{}\" is not known: write error, warning, info or debug")), text)));
}

tl::expected<void, Error> set_progress(Progress &progress, const std::string &text)
{
    if (text.empty())
        return {};
    if (text == "auto")
        progress = Progress::automatic;
    else if (text == "always")
        progress = Progress::always;
    else if (text == "never")
        progress = Progress::never;
    else
        return tl::unexpected(invalid(
            fmt::format(fmt::runtime(_("--progress: \"{}\" is not known: write auto, always or never")), text)));
    return {};
}

Result<Options> check(Options options, const Raw &raw)
{
    options.read_only = raw.read_only;
    options.stats = raw.stats;
    options.show_version = raw.version;
    return set_time(options.connect_timeout, "--connect-timeout", raw.connect_timeout)
        .and_then([&] { return set_time(options.idle_timeout, "--idle-timeout", raw.idle_timeout); })
        .and_then([&] { return set_time(options.fin_timeout, "--fin-timeout", raw.fin_timeout); })
        .and_then([&] { return set_time(options.stuck_timeout, "--fin-timeout", raw.fin_timeout); })
        .and_then([&] { return set_buffer(options.buffer_bytes, raw.buffer_size); })
        .and_then([&] { return set_log_level(options.log_level, raw.log_level); })
        .and_then([&] { return set_progress(options.progress, raw.progress); })
        .map([&] { return options; });
}

} // namespace

const char *program_name(const Options &options)
{
    return options.as_virt_ssh_helper ? "virt-ssh-helper" : "sluice-ssh-helper";
}

Result<Options> parse_options(int argc, char **argv)
{
    Options options;
    std::string_view called = argc > 0 ? argv[0] : "";
    options.as_virt_ssh_helper = called.substr(called.rfind('/') + 1) == "virt-ssh-helper";

    Raw raw;
    auto progress = reinterpret_cast<gpointer>(on_progress);
    const GOptionEntry own[] = {
        {"connect-timeout", 0, 0, G_OPTION_ARG_STRING, &raw.connect_timeout,
         N_("Give up connecting after TIME (default 10s, 0: never)"), N_("TIME")},
        {"idle-timeout", 0, 0, G_OPTION_ARG_STRING, &raw.idle_timeout,
         N_("End when nothing has moved for TIME (default 0: never)"), N_("TIME")},
        {"fin-timeout", 0, 0, G_OPTION_ARG_STRING, &raw.fin_timeout,
         N_("End when one direction has ended and nothing has moved for TIME (default 30s for bytes that nobody takes, "
            "none while a reply is awaited; 0: never)"),
         N_("TIME")},
        {"buffer-size", 0, 0, G_OPTION_ARG_STRING, &raw.buffer_size,
         N_("Hold at most SIZE in each direction, 4K to 1M (default 1M)"), N_("SIZE")},
        {"log-level", 0, 0, G_OPTION_ARG_STRING, &raw.log_level,
         N_("Report error, warning, info or debug (default warning)"), N_("LEVEL")},
        {"progress", 0, G_OPTION_FLAG_OPTIONAL_ARG, G_OPTION_ARG_CALLBACK, progress,
         N_("Show a live line on stderr: auto (on a terminal only), always or never"), N_("WHEN")},
        {"stats", 0, 0, G_OPTION_ARG_NONE, &raw.stats, N_("Print one line of figures on stderr at the end"), nullptr},
        {},
    };
    const GOptionEntry shared[] = {
        {"readonly", 'r', 0, G_OPTION_ARG_NONE, &raw.read_only, N_("Use the read-only socket of a libvirt URI"),
         nullptr},
        {"version", 'V', 0, G_OPTION_ARG_NONE, &raw.version, N_("Show the version and exit"), nullptr},
        {},
    };
    std::unique_ptr<GOptionContext, ContextFree> context(
        g_option_context_new(options.as_virt_ssh_helper ? N_("URI") : N_("ADDRESS")));
    g_option_context_set_translation_domain(context.get(), "sluice");
    GOptionGroup *group = g_option_group_new("", "", "", &raw, nullptr);
    if (!options.as_virt_ssh_helper)
        g_option_group_add_entries(group, own);
    g_option_group_add_entries(group, shared);
    g_option_group_set_translation_domain(group, "sluice");
    g_option_context_set_main_group(context.get(), group);
    g_option_context_set_summary(context.get(), N_("Join standard input and output to the socket of a local daemon."));
    if (!options.as_virt_ssh_helper)
        g_option_context_set_description(context.get(),
                                         N_("ADDRESS is /PATH, unix:/PATH, unix:@NAME, tcp:HOST:PORT, vsock:CID:PORT\n"
                                            "or a libvirt URI such as qemu:///system."));

    // help and GOption's own complaints come in the user's language too
    if (argc > 1 && argv[1][0] == '-')
        set_up_translation();
    // GOption would take the word after it for its value
    for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
        if (std::string_view(argv[i]) == "--progress")
            argv[i] = const_cast<char *>("--progress=auto");
    }
    GError *error = nullptr;
    if (!g_option_context_parse(context.get(), &argc, &argv, &error)) {
        Error failure = invalid(error->message);
        g_error_free(error);
        return tl::unexpected(std::move(failure));
    }
    auto checked = check(options, raw);
    if (!checked || checked->show_version)
        return checked;
    // "--" is for those whose address begins with a dash
    if (argc > 1 && std::string_view(argv[1]) == "--") {
        ++argv;
        --argc;
    }
    if (argc < 2)
        return tl::unexpected(invalid(_("no address: say where to connect to")));
    if (argc > 2)
        return tl::unexpected(invalid(fmt::format(fmt::runtime(_("\"{}\" is one argument too many")), argv[2])));
    checked->address = argv[1];
    return checked;
}

} // namespace sluice::helper
