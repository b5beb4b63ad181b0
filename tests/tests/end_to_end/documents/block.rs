//! The fenced blocks of a document, and the commands in them.
//!
//! CONTRIBUTING.md describes the words behind the fence. Must accept no word and no language that it does not know: a
//! command that nobody recognizes would be run by nobody.

/// The languages of what a person runs elsewhere: each line may be a command.
const OF_OTHER_SYSTEMS: [&str; 6] = ["cmake", "dockerfile", "groovy", "ini", "sh", "yaml"];

/// The languages of what is only read.
const CONTENT: [&str; 8] = ["cpp", "diff", "json", "python", "sql", "text", "toml", "xml"];

/// The language of commands with their output.
const CONSOLE: &str = "console";

/// A fenced block of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'a> {
    /// The number of the line of its fence.
    pub(super) line: usize,
    language: &'a str,
    /// Whether the test of the document cannot run it.
    pub(super) illustration: bool,
    /// The files that run its commands instead.
    pub(super) by: Option<Vec<&'a str>>,
    /// Whether nobody has run it.
    pub(super) untried: bool,
    /// The file that holds its lines.
    pub(super) file: Option<&'a str>,
    /// What is between the fences, without their indentation.
    pub(super) lines: Vec<&'a str>,
}

/// A command, and what it must do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Command<'a> {
    /// Its line in the document.
    pub(super) line: usize,
    /// What the shell gets.
    pub(super) text: String,
    /// How it ends.
    pub(super) code: i32,
    /// Whether it goes on until somebody presses Ctrl-C.
    pub(super) until_interrupted: bool,
    /// The output that the document shows; empty where it shows none.
    pub(super) shown: Vec<&'a str>,
}

/// The fenced blocks of a text.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(Block, usize)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let words = line.trim_start().strip_prefix("```");
        match (&mut open, words) {
            (None, Some(info)) => open = Some((Block::new(number, info), line.len() - line.trim_start().len())),
            (None, None) => {}
            (Some(_), Some(_)) => blocks.extend(open.take().map(|(block, _)| block)),
            (Some((block, indent)), None) => block.lines.push(line.get(*indent..).unwrap_or_default()),
        }
    }
    assert!(open.is_none(), "a block has no end: {open:?}");
    blocks
}

impl<'a> Block<'a> {
    fn new(line: usize, info: &'a str) -> Self {
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or_else(|| panic!("line {line}: a block without a language"));
        let mut block =
            Self { line, language, illustration: false, by: None, untried: false, file: None, lines: Vec::new() };
        for word in words {
            match word.split_once('=') {
                Some(("file", file)) => block.file = Some(file),
                Some(("by", files)) => block.by = Some(files.split(',').collect()),
                None if word == "illustration" => block.illustration = true,
                None if word == "untried" => block.untried = true,
                _ => panic!("line {line}: {word:?} is none of `illustration`, `by=FILES`, `untried` and `file=NAME`"),
            }
        }
        let elsewhere = OF_OTHER_SYSTEMS.contains(&language);
        assert!(
            elsewhere || language == CONSOLE || CONTENT.contains(&language),
            "line {line}: tests/tests/end_to_end/documents/block.rs does not know the language {language:?}"
        );
        assert!(
            !elsewhere || block.illustration || block.file.is_some(),
            "line {line}: no test runs {language:?}: mark it as an illustration, or use {CONSOLE} with `$ ` before each command"
        );
        assert!(!(block.illustration && block.file.is_some()), "line {line}: a file of an illustration is not written");
        block
    }

    /// How many things it shows that no test runs: commands of a console, or one file of another system.
    pub(super) fn illustrations(&self) -> usize {
        match (self.illustration, self.language) {
            (false, _) => 0,
            (true, CONSOLE) => self.commands().len(),
            (true, _) => 1,
        }
    }

    /// The commands in it; none if it is not a console.
    pub(super) fn commands(&self) -> Vec<Command<'a>> {
        let mut commands: Vec<Command<'a>> = Vec::new();
        let mut continued = false;
        let lines = if self.language == CONSOLE { &self.lines[..] } else { &[] };
        for (line, text) in (self.line + 1..).zip(lines) {
            match (text.strip_prefix("$ "), commands.last_mut()) {
                (None, Some(command)) if continued => {
                    *command = Command::new(command.line, &format!("{}\n{text}", command.text));
                }
                (None, Some(command)) => command.shown.push(text),
                (None, None) => panic!("line {line}: the first line of a console is a command behind `$ `"),
                (Some(text), _) => commands.push(Command::new(line, text)),
            }
            continued = text.ends_with('\\');
        }
        commands
    }
}

impl Command<'_> {
    fn new(line: usize, text: &str) -> Self {
        let (text, comment) = text.split_once(" # ").unwrap_or((text, ""));
        let code = comment.split_once("exit code ").map_or("0", |(_, code)| code);
        let code = code.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        Self {
            line,
            text: text.trim_end().to_owned(),
            code: code.parse().unwrap_or_else(|_| panic!("line {line}: expected `exit code` and a number")),
            until_interrupted: comment.contains("until Ctrl-C"),
            shown: Vec::new(),
        }
    }
}

#[test]
fn the_commands_of_a_console_are_recognized() {
    let text = "a\n```console\n$ one \\\n  two  # exit code 2\nout\n$ three   # exit code 1: it fails\n```\n- b\n  ```text file=x.txt\n  y\n   z\n  ```\n";
    let [console, file] = &blocks(text)[..] else { panic!("two blocks") };
    let [one, three] = &console.commands()[..] else { panic!("two commands") };
    assert_eq!((one.line, one.text.as_str(), one.code, &one.shown[..]), (3, "one \\\n  two", 2, &["out"][..]));
    assert_eq!((three.line, three.text.as_str(), three.code, three.shown.len()), (6, "three", 1, 0));
    assert_eq!((file.file, &file.lines[..], file.commands()), (Some("x.txt"), &["y", " z"][..], vec![]));
}

#[test]
fn what_no_test_runs_is_counted() {
    let text = "```console illustration\n$ srun a\n$ srun b\n```\n```yaml illustration\n- run: a\n- run: b\n```\n```console\n$ c\n```\n";
    let blocks = blocks(text);
    assert_eq!(blocks.iter().map(Block::illustrations).collect::<Vec<_>>(), [2, 1, 0]);
    let run = |text: &str| std::panic::catch_unwind(|| super::block::blocks(text).len());
    assert!(run("```sh\nrm x\n```\n").is_err(), "a script that is no illustration");
    assert!(run("```shell illustration\nrm x\n```\n").is_err(), "an unknown language");
    assert!(run("```console ilustration\n$ rm x\n```\n").is_err(), "a misspelt word");
    assert!(run("```\n$ rm x\n```\n").is_err(), "no language");
}
