/** `svcctl completion bash|zsh|fish`: scripts that are generated from the table of verbs, so that they are always complete. */
import { Option } from 'commander';
import { BUILT_IN_SLOTS } from '../../schema/provider-kinds.ts';
import type { Verb, VerbArgument, VerbGroup, VerbOption, VerbRun } from '../verb.ts';

/** What can follow on a command line. */
interface Position {
  /** Words that lead here, such as `slot load`. Empty for the program itself. */
  readonly path: string;
  readonly words: readonly { readonly text: string; readonly help: string }[];
  readonly options: readonly VerbOption[];
}

/** Returns the verb for a table of verbs and the options that all of them have. */
export function createCompletion(verbs: readonly (Verb | VerbGroup)[], globals: readonly VerbOption[]): VerbRun {
  const shared = [...globals, { flags: '-h, --help', help: 'Show help' }];
  return async ({ terminal }, _options, shell) => {
    const script = shell === 'bash' ? bashScript : shell === 'zsh' ? zshScript : fishScript;
    await terminal.write(`${script(positions(verbs, shared))}\n`);
  };
}

function positions(entries: readonly (Verb | VerbGroup)[], shared: readonly VerbOption[], path = ''): readonly Position[] {
  const here = { path, words: entries.map(({ name, help }) => ({ text: name, help })), options: shared };
  const below = entries.flatMap((entry) => {
    const next = `${path} ${entry.name}`.trim();
    if (!('load' in entry)) return positions(entry.verbs, shared, next);
    const words = (entry.arguments ?? []).flatMap(suggestionsFor).map((text) => ({ text, help: '' }));
    return [{ path: next, words, options: [...(entry.options ?? []), ...shared] }];
  });
  return [here, ...below];
}

function suggestionsFor({ choices = [], suggestions = choices }: VerbArgument): readonly string[] {
  if (suggestions === 'slot') return BUILT_IN_SLOTS;
  return suggestions === 'slot/NAME' ? BUILT_IN_SLOTS.map((slot) => `slot/${slot}`) : suggestions;
}

/** `-o` and `--output`. */
function flagsOf({ flags }: VerbOption): readonly string[] {
  const { short, long } = new Option(flags);
  return [short, long].filter((flag) => flag !== undefined && flag !== null);
}

function takesValue({ flags }: VerbOption): boolean {
  return flags.includes('<');
}

function bashScript(all: readonly Position[]): string {
  const valued = all.flatMap(({ options }) => options.filter(takesValue));
  const pattern = (options: readonly VerbOption[]): string => [...new Set(options.flatMap(flagsOf))].join('|');
  const choices = new Map(valued.flatMap((option) => (option.choices === undefined ? [] : [[pattern([option]), option.choices]])));
  const choiceCases = [...choices].map(([flags, values]) => `    ${flags}) choices="${values.join(' ')}" ;;`);
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const positionCases = all.map(({ path, words, options }) => {
    const texts = [...words.map(({ text }) => text), ...options.flatMap(flagsOf)];
    return `      "${path}") choices="${texts.join(' ')}" ;;`;
  });
  return `# bash completion of svcctl; load it with: source <(svcctl completion bash)
_svcctl() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" where="" word index choices
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$word" in
      ${pattern(valued)}) ((index++)); continue ;;
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
    ${pattern(valued.filter(({ path }) => path))}) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
${choiceCases.join('\n')}
    ${pattern(valued.filter((option) => !option.path && option.choices === undefined))}) return ;;
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
    const options = position.options.map((option) => {
      const names = flagsOf(option).map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
      const value = takesValue(option) ? (option.path ? ' -r' : ' -x') : '';
      const values = option.choices === undefined ? '' : ` -a ${quote(option.choices.join(' '))}`;
      return `${prefix} ${names.join(' ')}${value}${values} -d ${quote(option.help)}`;
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
