// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/config_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>

#include "remote/proxyd/config/check.hpp"
#include "remote/proxyd/config/keys.hpp"
#include "remote/proxyd/config/reading.hpp"
#include "remote/proxyd/config/toml_value.hpp"
#include "util/base/nearest.hpp"
#include "util/base/printable.hpp"
#include "util/base/unique_fd.hpp"
#include "util/net/format.hpp"

namespace sluice::proxyd {
namespace {

constexpr size_t file_bytes_max = 1 << 20;
constexpr std::string_view suffix = ".toml";

// The files one after the other, each over what the ones before it have said.
class Reading {
public:
    void add(std::string_view text, const std::string &file);
    void fail(const std::string &file, std::string message) { problems_.push_back({{file, 0, 0}, std::move(message)}); }
    tl::expected<Config, std::vector<Problem>> finish(const std::string &file,
                                                      const std::function<void(Config &)> &adjust);

private:
    void add_services(const TomlEntry &entry);
    void add_service(const TomlValue &value, std::map<std::string, Place> &in_this_file);

    Config config_;
    std::map<std::string, std::set<std::string>> keys_; // given for each service, by any file
    std::vector<Problem> problems_;
    std::vector<Problem> missing_;
    bool readable_ = true; // nothing was left out that could be what is missing
    bool complete_ = true; // all services are there, to be checked as a whole
};

void Reading::add(std::string_view text, const std::string &file)
{
    size_t before = problems_.size();
    TomlText toml = parse_toml(text, file);
    readable_ = readable_ && toml.problems.empty();
    problems_.insert(problems_.end(), toml.problems.begin(), toml.problems.end());
    for (const TomlEntry &entry : *toml.root.table()) {
        Field field{entry.key, entry.value, problems_};
        if (entry.key == "daemon") {
            read_daemon(field, config_);
        } else if (entry.key == "admin") {
            read_admin(field, config_.admin);
            config_.admin.place = entry.place;
        } else if (entry.key == "service") {
            add_services(entry);
        } else {
            std::string message = format(_("unknown table or key \"{}\"; expected {}"), printable(entry.key),
                                         "[daemon], [admin], [[service]]");
            std::string meant = nearest(entry.key, {"daemon", "admin", "service"});
            if (!meant.empty())
                message += format(_("; did you mean \"{}\"?"), meant);
            problems_.push_back({entry.place, std::move(message)});
        }
    }
    std::stable_sort(problems_.begin() + static_cast<ptrdiff_t>(before), problems_.end(),
                     [](const Problem &a, const Problem &b) {
                         return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
                     });
}

void Reading::add_services(const TomlEntry &entry)
{
    const auto *array = entry.value.array();
    bool all_tables = array && std::all_of(array->begin(), array->end(),
                                           [](const TomlValue &value) { return value.table() != nullptr; });
    if (!all_tables) {
        Field field{entry.key, entry.value, problems_};
        field.expected(_("tables, each under a line [[service]]"));
        complete_ = false;
        return;
    }
    std::map<std::string, Place> in_this_file;
    for (const TomlValue &value : *array)
        add_service(value, in_this_file);
}

void Reading::add_service(const TomlValue &value, std::map<std::string, Place> &in_this_file)
{
    const TomlValue::Table &table = *value.table();
    auto named = std::find_if(table.begin(), table.end(), [](const TomlEntry &entry) { return entry.key == "name"; });
    const std::string *name = named == table.end() ? nullptr : named->value.text();
    if (named == table.end())
        missing_.push_back({value.place, format(_("{}: the key \"{}\" is missing"), "service", "name")});
    Field field{"service", value, problems_};
    if (!name || !is_service_name(*name)) {
        // for the sake of the other problems in it
        ServiceConfig nameless;
        read_service(field, nameless);
        complete_ = false;
        return;
    }
    auto [seen, first] = in_this_file.emplace(*name, named->value.place);
    if (!first) {
        problems_.push_back({named->value.place, format(_("service.name: found \"{}\" again, expected a name that no "
                                                          "other service of this file has (line {})"),
                                                        *name, seen->second.line)});
    }
    auto known = std::find_if(config_.services.begin(), config_.services.end(),
                              [&](const ServiceConfig &service) { return service.name == *name; });
    if (known == config_.services.end()) {
        ServiceConfig fresh;
        fresh.place = value.place;
        known = config_.services.insert(config_.services.end(), std::move(fresh));
    }
    read_service(field, *known);
    for (const TomlEntry &entry : table)
        keys_[*name].insert(entry.key);
}

tl::expected<Config, std::vector<Problem>> Reading::finish(const std::string &file,
                                                           const std::function<void(Config &)> &adjust)
{
    for (const ServiceConfig &service : config_.services) {
        for (const char *key : {"listen", "connect"}) {
            if (!keys_[service.name].contains(key))
                missing_.push_back(
                    {service.place, format(_("service {}: the key \"{}\" is missing"), service.name, key)});
        }
    }
    if (readable_)
        problems_.insert(problems_.end(), missing_.begin(), missing_.end());
    if (readable_ && complete_) {
        if (adjust)
            adjust(config_);
        for (Problem &problem : check_config(config_)) {
            if (problem.place.file.empty())
                problem.place = {file, 1, 1};
            problems_.push_back(std::move(problem));
        }
    }
    if (!problems_.empty())
        return tl::unexpected(std::move(problems_));
    return std::move(config_);
}

Result<std::string> read_file(const std::string &path)
{
    UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd)
        return fail_errno(errno, _("cannot be opened"));
    std::string text;
    char bytes[16384];
    for (;;) {
        ssize_t n = read(fd.get(), bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(errno, _("cannot be read"));
        if (n == 0)
            return text;
        text.append(bytes, static_cast<size_t>(n));
        if (text.size() > file_bytes_max)
            return fail(EFBIG, format(_("is larger than {} bytes: this is no configuration"), file_bytes_max));
    }
}

void add_file(Reading &reading, const std::string &path)
{
    auto text = read_file(path);
    if (text)
        reading.add(*text, path);
    else
        reading.fail(path, text.error().message);
}

// *.toml in the folder, in the order of their names' bytes; none where there is no folder.
Result<std::vector<std::string>> list_drop_ins(const std::string &folder)
{
    struct Close {
        void operator()(DIR *dir) const { closedir(dir); }
    };
    std::unique_ptr<DIR, Close> dir(opendir(folder.c_str()));
    if (!dir && errno == ENOENT)
        return std::vector<std::string>{};
    if (!dir)
        return fail_errno(errno, _("cannot be opened"));
    std::vector<std::string> names;
    while (const dirent *entry = readdir(dir.get())) {
        std::string_view name = entry->d_name;
        if (name.ends_with(suffix) && !name.starts_with('.'))
            names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

} // namespace

std::string to_string(const Problem &problem)
{
    const Place &place = problem.place;
    if (place.file.empty())
        return problem.message;
    if (place.line == 0)
        return fmt::format("{}: {}", printable(place.file), problem.message);
    return fmt::format("{}:{}:{}: {}", printable(place.file), place.line, place.column, problem.message);
}

tl::expected<Config, std::vector<Problem>> read_config(const std::string &path,
                                                       const std::function<void(Config &)> &adjust)
{
    Reading reading;
    auto text = read_file(path);
    if (!text) {
        // what the drop-ins lack without it is of no interest
        std::vector<Problem> problems(1);
        problems.front().place.file = path;
        problems.front().message = text.error().message;
        return tl::unexpected(std::move(problems));
    }
    reading.add(*text, path);
    std::string folder = path + ".d";
    auto names = list_drop_ins(folder);
    if (!names)
        reading.fail(folder, names.error().message);
    for (size_t index = 0; names && index < names->size(); ++index)
        add_file(reading, folder + "/" + (*names)[index]);
    return reading.finish(path, adjust);
}

tl::expected<Config, std::vector<Problem>> parse_config(std::string_view text, const std::string &file)
{
    Reading reading;
    reading.add(text, file);
    return reading.finish(file, {});
}

} // namespace sluice::proxyd
