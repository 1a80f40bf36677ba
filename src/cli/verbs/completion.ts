/** `svcctl completion bash|zsh|fish`: scripts that are generated from the table of verbs, so that they are always complete. */
import { Option } from 'commander';
import { BUILT_IN_SLOTS } from '../../schema/names.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { GLOBAL_OPTIONS, VERBS } from '../verb-table.ts';
import type { Verb, VerbArgument, VerbGroup, VerbOption } from '../verb.ts';

/** What can follow on a command line. */
interface Position {
  /** Words that lead here, such as `slot load`. Empty for the program itself. */
  readonly path: string;
  readonly words: readonly { readonly text: string; readonly help: string }[];
  readonly options: readonly CompletedOption[];
}

interface CompletedOption {
  readonly flags: readonly string[];
  readonly help: string;
  readonly takesValue: boolean;
  readonly takesPath: boolean;
  readonly choices: readonly string[];
}

export async function runCompletion({ terminal }: Cli, _options: object, shell: string): Promise<ExitCode> {
  const script = shell === 'bash' ? bashScript : shell === 'zsh' ? zshScript : fishScript;
  await terminal.write(`${script(positions())}\n`);
  return EXIT.done;
}

function positions(): readonly Position[] {
  const below = (entries: readonly (Verb | VerbGroup)[], path: string, options: readonly VerbOption[] = []): readonly Position[] => [
    { path, words: entries.map(({ name, help }) => ({ text: name, help })), options: [...options, HELP].map(completed) },
    ...entries.flatMap((entry) => {
      const next = `${path} ${entry.name}`.trim();
      if (!('load' in entry)) return below(entry.verbs, next, GLOBAL_OPTIONS);
      const words = (entry.arguments ?? []).flatMap(suggestionsFor).map((text) => ({ text, help: '' }));
      return [{ path: next, words, options: [...(entry.options ?? []), ...GLOBAL_OPTIONS, HELP].map(completed) }];
    }),
  ];
  return below(VERBS, '', GLOBAL_OPTIONS);
}

const HELP: VerbOption = { flags: '-h, --help', help: 'Show help' };

function suggestionsFor({ choices, suggestions = [] }: VerbArgument): readonly string[] {
  if (suggestions === 'slot') return BUILT_IN_SLOTS;
  if (suggestions === 'slot/NAME') return BUILT_IN_SLOTS.map((slot) => `slot/${slot}`);
  return [...(choices ?? []), ...suggestions];
}

function completed({ flags, help, path, choices = [] }: VerbOption): CompletedOption {
  const { short, long, required } = new Option(flags);
  const names = [short, long].filter((flag) => flag !== undefined && flag !== null);
  return { flags: names, help, takesValue: required, takesPath: path === true, choices };
}
function bashScript(all: readonly Position[]): string {
  const valued = all.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue));
  const flagsOf = (options: readonly CompletedOption[]): string => [...new Set(options.flatMap(({ flags }) => flags))].join('|');
  const choices = new Map(valued.filter((option) => option.choices.length > 0).map((option) => [flagsOf([option]), option.choices]));
  const choiceCases = [...choices].map(([flags, values]) => `    ${flags}) choices="${values.join(' ')}" ;;`);
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const positionCases = all.map(({ path, words, options }) => {
    const texts = [...words.map(({ text }) => text), ...options.flatMap(({ flags }) => flags)];
    return `      "${path}") choices="${texts.join(' ')}" ;;`;
  });
  return `# bash completion of svcctl; load it with: source <(svcctl completion bash)
_svcctl() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" where="" word index choices
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$word" in
      ${flagsOf(valued)}) ((index++)); continue ;;
      -*) continue ;;
    esac
    case "\${where:+$where }$word" in
      ${paths.join('|')}) where="\${where:+$where }$word" ;;
    esac
  done
  COMPREPLY=()
  # "-f" of "slot logs" takes no value.
  if [[ "$previous" == "-f" && "$where" == "slot logs" ]]; then previous=""; fi
  case "$previous" in
    ${flagsOf(valued.filter(({ takesPath }) => takesPath))}) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
${choiceCases.join('\n')}
    ${flagsOf(valued.filter((option) => !option.takesPath && option.choices.length === 0))}) return ;;
    *) case "$where" in
${positionCases.join('\n')}
    esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
}
complete -F _svcctl svcctl`;
}

/** zsh runs the bash script in its compatibility mode. */
function zshScript(all: readonly Position[]): string {
  return bashScript(all)
    .replace(
      /^# bash completion.*$/m,
      '# zsh completion of svcctl; load it with: source <(svcctl completion zsh)\nautoload -U +X bashcompinit && bashcompinit',
    )
    .replace('compopt -o filenames 2>/dev/null; ', '')
    .replaceAll(/mapfile -t COMPREPLY < <\((compgen .*?)\)(?=;|$)/gm, 'COMPREPLY=($${(f)"$$($1)"})');
}

function fishScript(all: readonly Position[]): string {
  const lines = all.flatMap((position) => {
    const prefix = `complete -c svcctl -n ${quote(fishCondition(position, all))}`;
    const words = position.words.map(({ text, help }) => `${prefix} -f -a ${quote(text)} -d ${quote(help)}`);
    const options = position.options.map(({ flags, help, takesValue, takesPath, choices }) => {
      const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');
      const values = choices.length === 0 ? '' : ` -a ${quote(choices.join(' '))}`;
      return `${prefix} ${names}${takesValue ? (takesPath ? ' -r' : ' -x') : ''}${values} -d ${quote(help)}`;
    });
    return [...words, ...options];
  });
  return `# fish completion of svcctl; load it with: svcctl completion fish | source\ncomplete -c svcctl -f\n${lines.join('\n')}`;
}

function fishCondition({ path }: Position, all: readonly Position[]): string {
  if (path === '') return '__fish_use_subcommand';
  const below = all.filter((other) => other.path.startsWith(`${path} `)).map((other) => other.path.slice(path.length + 1));
  const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
  return [...seen, ...(below.length === 0 ? [] : [`not __fish_seen_subcommand_from ${below.join(' ')}`])].join('; and ');
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
