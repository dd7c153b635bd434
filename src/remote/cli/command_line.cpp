// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/cli/command_line.hpp"

#include <cerrno>
#include <string_view>

#include "util/glib/owners.hpp"
#include "util/net/format.hpp"

namespace sluice::cli {

CommandLine::CommandLine(const Command &command, Global &global, bool json)
    : global_(global), name_(std::string("sluice ") + command.name),
      context_(g_option_context_new(*command.arguments ? command.arguments : nullptr))
{
    g_option_context_set_summary(context_.get(), command.summary);
    add_global(json);
    if (!json)
        json_ = global.json; // refused by parse()
}

CommandLine::CommandLine(const char *arguments, const char *summary, Global &global)
    : global_(global), name_("sluice"), context_(g_option_context_new(arguments))
{
    g_option_context_set_summary(context_.get(), summary);
    g_option_context_set_strict_posix(context_.get(), TRUE);
    add_global(true);
}

CommandLine::~CommandLine()
{
    g_free(admin_);
}

void CommandLine::add_global(bool json)
{
    add({"admin", 0, 0, G_OPTION_ARG_STRING, &admin_, N_("The admin socket of sluiced: unix:/PATH or tcp:HOST:PORT"),
         N_("ADDRESS")});
    if (json)
        add({"json", 0, 0, G_OPTION_ARG_NONE, &json_, N_("Print JSON"), nullptr});
}

void CommandLine::describe(const std::string &text)
{
    g_option_context_set_description(context_.get(), text.c_str());
}

Result<std::vector<char *>> CommandLine::parse(int argc, char **argv)
{
    entries_.push_back({});
    GOptionGroup *group = g_option_group_new("", "", "", nullptr, nullptr);
    g_option_group_add_entries(group, entries_.data());
    g_option_group_set_translation_domain(group, "sluice");
    g_option_context_set_main_group(context_.get(), group);
    g_option_context_set_translation_domain(context_.get(), "sluice");
    if (json_)
        return fail(EINVAL, format(_("{} has no --json"), name_));

    set_up_translation();         // for GOption's own texts too
    g_set_prgname(name_.c_str()); // the help begins with it
    GError *raw = nullptr;
    if (!g_option_context_parse(context_.get(), &argc, &argv, &raw)) {
        GErrorPtr error(raw);
        return fail(EINVAL, format(_("{}; {} --help lists what there is"), error->message, name_));
    }
    if (admin_)
        global_.admin = admin_;
    global_.json = global_.json || json_;
    std::vector<char *> words(argv + 1, argv + argc);
    if (!words.empty() && std::string_view(words.front()) == "--")
        words.erase(words.begin());
    return words;
}

Result<std::string> CommandLine::parse_one(int argc, char **argv, const char *what)
{
    auto words = parse(argc, argv);
    if (!words)
        return tl::unexpected(words.error());
    if (words->empty())
        return fail(EINVAL, format(_("{0} needs a {1}: {0} {1}"), name_, what));
    if (words->size() > 1)
        return fail(EINVAL, format(_("\"{}\" is one argument too many"), (*words)[1]));
    return std::string(words->front());
}

Result<void> CommandLine::parse_none(int argc, char **argv)
{
    auto words = parse(argc, argv);
    if (!words)
        return tl::unexpected(words.error());
    if (!words->empty())
        return fail(EINVAL, format(_("\"{}\" is one argument too many"), words->front()));
    return {};
}

} // namespace sluice::cli
