// man: the man pages, as roff, from the tables of commands and keys.
#include <cstdio>

#include "cli/help.h"

namespace belljar::cli {
namespace {

// Hyphens that must stay hyphens, and what would be taken for a request.
std::string escaped(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

class Page {
 public:
  Page(std::string_view title, std::string_view section) {
    text_ = ".TH " + std::string(title) + " " + std::string(section) +
            " \"\" \"belljar " BELLJAR_VERSION "\" \"belljar\"\n";
  }
  void heading(std::string_view name) { text_.append(".SH ").append(name).append("\n"); }
  void paragraph(std::string_view text) {
    begin_paragraph();
    line(text);
  }
  void line(std::string_view text) { text_.append(escaped(text)).append("\n"); }
  // Words as they are typed.
  void verbatim(std::string_view text) {
    begin_paragraph();
    text_.append(".nf\n").append(escaped(text));
    if (!text.ends_with('\n')) text_.push_back('\n');
    text_ += ".fi\n";
  }
  void item(std::string_view name, std::string_view text) {
    text_.append(".TP\n.B ").append(escaped(name)).append("\n").append(escaped(text)).append("\n");
  }
  const std::string& text() const { return text_; }

 private:
  void begin_paragraph() {
    if (text_[text_.rfind('\n', text_.size() - 2) + 2] != 'S') text_ += ".PP\n";  // not after .SH
  }
  std::string text_;
};

void add_flags(Page& page, std::span<const FlagHelp> flags) {
  for (const FlagHelp& flag : flags) {
    std::string name = "--" + std::string(flag.name);
    if (!flag.value.empty()) name.append("=").append(flag.value);
    if (flag.letter != 0) name.append(", -").push_back(flag.letter);
    page.item(name, flag.help);
  }
}

void add_policy_flags(Page& page) {
  for (const Key& key : keys()) {
    std::string name = "--" + std::string(key.flag);
    if (!key.value.empty()) name.append("=").append(key.value);
    if (key.letter != 0) name.append(", -").append(1, key.letter).append(" ").append(key.value);
    page.item(name, std::string(key.help) + (is_repeatable(key.kind) ? " (repeatable)" : ""));
  }
}

std::string_view toml_form(Kind kind) {
  switch (kind) {
    case Kind::flag:
      return "true or false";
    case Kind::count:
      return "a number, or \"unlimited\"";
    case Kind::duration:
      return "seconds, or a string such as \"500ms\" or \"2m\"";
    case Kind::assignments:
      return "a table of strings";
    default:
      return is_repeatable(kind) ? "a list of strings" : "a string";
  }
}

std::string belljar_page() {
  Page page("BELLJAR", "1");
  page.heading("NAME");
  page.line("belljar - run code that you do not trust where it can work but cannot do damage");
  page.heading("SYNOPSIS");
  page.line("belljar [FLAGS] COMMAND ...");
  page.heading("DESCRIPTION");
  page.paragraph(
      "belljar starts a program in a jar: namespaces, mounts, limits and filters of the "
      "kernel, made for this one program and gone with it. It needs no daemon and no root.");
  page.heading("COMMANDS");
  for (const Subcommand& command : kSubcommands)
    if (!command.hidden)
      page.item(std::string(command.name) + " " + std::string(command.usage), command.purpose);
  page.heading("OPTIONS");
  add_flags(page, kGlobalFlags);
  for (const Subcommand& command : kSubcommands) {
    if (command.flags.empty() || command.hidden) continue;
    page.paragraph("Of " + std::string(command.name) + ":");
    add_flags(page, command.flags);
  }
  page.heading("ENVIRONMENT");
  page.item("BELLJAR_SANDBOX", "auto, on or off, where no flag and no file says it");
  page.item("NO_COLOR", "print without colours");
  page.heading("SEE ALSO");
  page.line("belljar-exec(1), belljar.toml(5)");
  return page.text();
}

std::string exec_page() {
  const Subcommand& exec = *find_subcommand("exec");
  Page page("BELLJAR-EXEC", "1");
  page.heading("NAME");
  page.line("belljar-exec - " + std::string(exec.purpose));
  page.heading("SYNOPSIS");
  page.line("belljar exec " + std::string(exec.usage));
  page.heading("OPTIONS");
  add_flags(page, exec.flags);
  add_policy_flags(page);
  page.heading("NOTES");
  page.verbatim(exec.more);
  page.heading("SEE ALSO");
  page.line("belljar(1), belljar.toml(5)");
  return page.text();
}

std::string toml_page() {
  Page page("BELLJAR.TOML", "5");
  page.heading("NAME");
  page.line("belljar.toml - what a project asks of the sandbox");
  page.heading("DESCRIPTION");
  page.paragraph(
      "The file has a table [sandbox] with keys of a policy, tables [profiles.NAME] with the same "
      "keys and extends, and tables [tasks.NAME] with the same keys and description, run, depends "
      "and dir. Relative paths start at the file's folder. Unknown keys are errors.");
  page.paragraph(
      "A project's file may only narrow what is allowed until the person who runs it trusts it. "
      "Keys that would widen are marked below.");
  page.heading("KEYS");
  for (const Key& key : keys()) {
    std::string text = std::string(key.help) + "; " + std::string(toml_form(key.kind));
    if (key.widens) text += "; may widen";
    page.item(key.name, text);
  }
  page.heading("EXAMPLE");
  page.verbatim(
      "[sandbox]\n"
      "network = \"none\"\n"
      "hide = [\".env\"]\n"
      "max_memory_mb = 512\n");
  page.heading("SEE ALSO");
  page.line("belljar(1), belljar-exec(1)");
  return page.text();
}

Result<int> print_page(const Arguments& arguments) {
  const std::string name = arguments.empty() ? "belljar" : arguments[0];
  std::string text = name == "belljar"        ? belljar_page()
                     : name == "belljar-exec" ? exec_page()
                     : name == "belljar.toml" ? toml_page()
                                              : "";
  if (text.empty() || arguments.size() > 1)
    return fail("man needs one of belljar, belljar-exec, belljar.toml");
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

int man(const Arguments& arguments) { return report(print_page(arguments)); }

}  // namespace belljar::cli
