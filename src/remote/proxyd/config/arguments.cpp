// SPDX-License-Identifier: LGPL-2.1-or-later
#include "remote/proxyd/config/arguments.hpp"

#include <algorithm>
#include <cstddef>

namespace sluice::proxyd {
namespace {

// The one that is called so, or else the only one that begins so.
const OptionName *find_long(std::string_view name, const std::vector<OptionName> &known)
{
    const OptionName *found = nullptr;
    for (const OptionName &option : known) {
        if (option.name == name)
            return &option;
        if (!option.name.starts_with(name))
            continue;
        if (found)
            return nullptr;
        found = &option;
    }
    return found;
}

} // namespace

std::vector<std::string> spell_out(const std::vector<std::string> &arguments, const std::vector<OptionName> &known)
{
    std::vector<std::string> result;
    for (size_t index = 0; index < arguments.size(); ++index) {
        const std::string &argument = arguments[index];
        if (argument == "--") {
            result.insert(result.end(), arguments.begin() + static_cast<ptrdiff_t>(index), arguments.end());
            break;
        }
        const OptionName *option = nullptr;
        std::string spelt = argument;
        if (argument.starts_with("--")) {
            size_t end = std::min(argument.find('='), argument.size());
            option = find_long(std::string_view(argument).substr(2, end - 2), known);
            if (option)
                spelt = "--" + std::string(option->name) + argument.substr(end);
        } else if (argument.size() > 1 && argument[0] == '-') {
            auto found = std::find_if(known.begin(), known.end(),
                                      [&](const OptionName &one) { return one.letter == argument[1]; });
            option = found == known.end() ? nullptr : &*found;
            if (option && option->has_value && argument.size() > 2)
                spelt = "--" + std::string(option->name) + "=" + argument.substr(2);
        }
        result.push_back(spelt);
        // the next one is a value, whatever it looks like
        if (option && option->has_value && spelt.find('=') == std::string::npos && index + 1 < arguments.size())
            result.push_back(arguments[++index]);
    }
    return result;
}

} // namespace sluice::proxyd
