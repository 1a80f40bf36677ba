/** `svcctl completion bash|zsh|fish`: scripts made from the tree of commands, so that they cannot lag behind it. */
import type { Command, Option } from 'commander';
import { BUILT_IN_SLOTS } from '../../schema/names.ts';
import type { Cli } from '../cli.ts';
import { EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { LISTINGS } from './get.ts';

interface Node {
  /** Words that lead here: `slot load`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly { readonly text: string; readonly description: string }[];
  readonly options: readonly { readonly flags: readonly string[]; readonly description: string; readonly takesValue: boolean }[];
}

/** Words that stand for a value, by the path of the command that takes it. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  get: LISTINGS,
  completion: ['bash', 'zsh', 'fish'],
  explain: BUILT_IN_SLOTS,
  timeline: BUILT_IN_SLOTS,
  wait: BUILT_IN_SLOTS.map((slot) => `slot/${slot}`),
  ...Object.fromEntries(['load', 'unload', 'restart', 'logs', 'create', 'delete'].map((verb) => [`slot ${verb}`, BUILT_IN_SLOTS])),
};

export function runCompletion(cli: Cli, shell: string, program: Command): ExitCode {
  const nodes = nodesOf(program);
  switch (shell) {
    case 'bash':
      cli.terminal.line(bashScript(nodes));
      return EXIT.done;
    case 'zsh':
      cli.terminal.line(zshScript(nodes));
      return EXIT.done;
    case 'fish':
      cli.terminal.line(fishScript(nodes));
      return EXIT.done;
    default:
      throw usageFailure(`Use bash, zsh or fish, not "${shell}"`, 'For instance: svcctl completion bash > /etc/bash_completion.d/svcctl');
  }
}

function nodesOf(command: Command, path: readonly string[] = []): readonly Node[] {
  const below = command.commands.filter((child) => child.name() !== 'help');
  const options = [...command.options, ...(path.length === 0 ? [] : rootOf(command).options)];
  const values = (VALUES[path.join(' ')] ?? []).map((text) => ({ text, description: '' }));
  const words = below.map((child) => ({ text: child.name(), description: child.description() }));
  const node = { path: path.join(' '), words: [...words, ...values], options: [...options.map(optionOf), HELP] };
  return [node, ...below.flatMap((child) => nodesOf(child, [...path, child.name()]))];
}

const HELP = { flags: ['-h', '--help'], description: 'show help', takesValue: false };

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}

function optionOf(option: Option): Node['options'][number] {
  const flags = [option.short, option.long].filter((flag) => flag !== undefined && flag !== null);
  return { flags, description: option.description, takesValue: option.required };
}

function isFileOption(flag: string): boolean {
  return ['-f', '--file', '--token-file', '--output-dir', '--kubeconfig', '--store', '--termination-log'].includes(flag);
}

function bashScript(nodes: readonly Node[]): string {
  const valued = [...new Set(nodes.flatMap((node) => node.options.filter((option) => option.takesValue).flatMap(({ flags }) => flags)))];
  const files = valued.filter(isFileOption).join('|');
  const other = valued.filter((flag) => !isFileOption(flag)).join('|');
  const paths = nodes.filter((node) => node.path !== '').map((node) => `"${node.path}"`);
  const cases = nodes.map((node) => {
    const words = [...node.words.map(({ text }) => text), ...node.options.flatMap(({ flags }) => flags)].join(' ');
    return `    "${node.path}") choices="${words}" ;;`;
  });
  return `# bash completion of svcctl; load it with: source <(svcctl completion bash)
_svcctl() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" where="" word index choices
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$word" in
      ${valued.join('|')}) ((index++)); continue ;;
      -*) continue ;;
    esac
    case "\${where:+$where }$word" in
      ${paths.join('|')}) where="\${where:+$where }$word" ;;
    esac
  done
  COMPREPLY=()
  # "-f" follows logs; with a file it takes one.
  if [[ "$previous" == "-f" && "$where" == "slot logs" ]]; then previous=""; fi
  case "$previous" in
    ${files}) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    ${other}) return ;;
  esac
  case "$where" in
${cases.join('\n')}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
}
complete -F _svcctl svcctl`;
}

/** zsh speaks bash's completion through its own compatibility layer. */
function zshScript(nodes: readonly Node[]): string {
  const script = bashScript(nodes)
    .replace(
      /^# bash completion.*$/m,
      '# zsh completion of svcctl; load it with: source <(svcctl completion zsh)\nautoload -U +X bashcompinit && bashcompinit',
    )
    .replaceAll(
      'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current")',
      'COMPREPLY=(${(f)"$(compgen -f -- "$current")"})',
    )
    .replaceAll(
      'mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")',
      'COMPREPLY=(${(f)"$(compgen -W "$choices" -- "$current")"})',
    );
  return script;
}

function fishScript(nodes: readonly Node[]): string {
  const lines = nodes.flatMap((node) => {
    const condition = fishCondition(node, nodes);
    const words = node.words.map(
      ({ text, description }) => `complete -c svcctl -n ${quote(condition)} -f -a ${quote(text)} -d ${quote(description)}`,
    );
    const options = node.options.map(({ flags, description, takesValue }) => {
      const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');
      const value = takesValue ? (flags.some(isFileOption) ? ' -r' : ' -x') : '';
      return `complete -c svcctl -n ${quote(condition)} ${names}${value} -d ${quote(description)}`;
    });
    return [...words, ...options];
  });
  return `# fish completion of svcctl; load it with: svcctl completion fish | source\ncomplete -c svcctl -f\n${lines.join('\n')}`;
}

function fishCondition(node: Node, nodes: readonly Node[]): string {
  if (node.path === '') return '__fish_use_subcommand';
  const below = nodes.filter(({ path }) => path.startsWith(`${node.path} `)).map(({ path }) => path.slice(node.path.length + 1));
  const seen = node.path
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ');
  return below.length === 0 ? seen : `${seen}; and not __fish_seen_subcommand_from ${below.join(' ')}`;
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
