/** `svcctl completion bash|zsh|fish`: scripts from the verb table. */
import { Option } from 'commander';
import { BUILT_IN_SLOTS } from '../../schema/slot/provider-kinds.ts';
import type { LiveList, Verb, VerbArgument, VerbGroup, VerbOption, VerbRun } from '../verb.ts';

/** Completions at one position of a command line. */
interface Position {
  /** The words before, such as `slot load`. Empty for the program itself. */
  readonly path: string;
  readonly words: readonly { readonly text: string; readonly help: string }[];
  /** Lists to request from the service. */
  readonly live: readonly LiveList[];
  readonly options: readonly VerbOption[];
}

/** Returns the verb for a table of verbs and the global options. */
export function createCompletion(verbs: readonly (Verb | VerbGroup)[], globals: readonly VerbOption[]): VerbRun {
  const shared = [...globals, { flags: '-h, --help', help: 'Show help' }];
  return async ({ terminal }, _options, shell) => {
    const all = positions(verbs, shared);
    const script = shell === 'bash' ? bashScript(all, globals) : shell === 'zsh' ? zshScript(all, globals) : fishScript(all);
    await terminal.write(`${script}\n`);
  };
}

function positions(entries: readonly (Verb | VerbGroup)[], shared: readonly VerbOption[], path = ''): readonly Position[] {
  const words = entries.map(({ name, help }) => ({ text: name, help }));
  const own = path === '' ? [{ flags: '--version', help: 'Show the version' }] : [];
  const here = { path, words, live: [], options: [...own, ...shared] };
  const below = entries.flatMap((entry) => {
    const next = `${path} ${entry.name}`.trim();
    if (!('load' in entry)) return positions(entry.verbs, shared, next);
    const all = (entry.arguments ?? []).map(suggestionsFor);
    const known = all.flatMap(({ texts }) => texts).map((text) => ({ text, help: '' }));
    return [{ path: next, words: known, live: all.flatMap(({ live }) => live), options: [...(entry.options ?? []), ...shared] }];
  });
  return [here, ...below];
}

type Suggestions = Readonly<{ texts: readonly string[]; live: readonly LiveList[] }>;

function suggestionsFor({ choices = [], suggestions = choices }: Pick<VerbArgument & VerbOption, 'choices' | 'suggestions'>): Suggestions {
  return typeof suggestions === 'string' ? { texts: [], live: [suggestions] } : { texts: suggestions, live: [] };
}

/** `-o` and `--output`. */
function flagsOf({ flags }: VerbOption): readonly string[] {
  const { short, long } = new Option(flags);
  return [short, long].filter((flag) => flag !== undefined && flag !== null);
}

const takesValue = ({ flags }: VerbOption): boolean => flags.includes('<');

/** Completions without a service. */
const FALLBACK: Readonly<Record<LiveList, readonly string[]>> = {
  slots: BUILT_IN_SLOTS,
  'slot/NAME': BUILT_IN_SLOTS.map((slot) => `slot/${slot}`),
  models: [],
  profiles: [],
};

/** Requests a list with the options on the line. The timeout keeps a silent service from blocking the shell. */
const LIVE_FUNCTION = `_svcctl_live() {
  local line list=() limit=()
  command -v timeout >/dev/null 2>&1 && limit=(timeout 3)
  case "$1" in models) list=(get models) ;; profiles) list=(profile list) ;; *) list=(get slots) ;; esac
  line="$("\${limit[@]}" svcctl "\${list[@]}" -o name "\${service[@]}" 2>/dev/null)"
  case "$1" in
    "slot/NAME") printf '%s\n' "\${line:-${FALLBACK['slot/NAME'].join(' ')}}" ;;
    slots) line="\${line//slot\\//}"; printf '%s\n' "\${line:-${FALLBACK.slots.join(' ')}}" ;;
    *) line="\${line//profile\\//}"; printf '%s\n' "\${line//model\\//}" ;;
  esac
}`;

/** Shell text for fixed words and live lists. */
function choiceText({ texts, live }: Suggestions): string {
  return `choices="${[...texts, ...live.map((list) => `$(_svcctl_live ${list})`)].join(' ')}"`;
}

function bashScript(all: readonly Position[], globals: readonly VerbOption[]): string {
  const valued = all.flatMap(({ options }) => options.filter(takesValue));
  const pattern = (options: readonly VerbOption[]): string => [...new Set(options.flatMap(flagsOf))].join('|');
  const suggested = valued.map((option) => ({ option, suggestions: suggestionsFor(option) }));
  const known = suggested.filter(({ suggestions: { texts, live } }) => texts.length + live.length > 0);
  // The same option has different values in different verbs.
  const choiceCases = [...Map.groupBy(known, ({ option }) => pattern([option]))].map(([flags, same]) => {
    const texts = [...new Set(same.flatMap(({ suggestions }) => suggestions.texts))];
    return `    ${flags}) ${choiceText({ texts, live: [...new Set(same.flatMap(({ suggestions }) => suggestions.live))] })} ;;`;
  });
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `"${path}"`);
  const positionCases = all.map(({ path, words, live, options }) => {
    const texts = [...words.map(({ text }) => text), ...options.flatMap(flagsOf)];
    return `      "${path}") ${choiceText({ texts, live })} ;;`;
  });
  const free = valued.filter((option) => !option.path && !known.some((each) => each.option === option));
  return `# bash completion of svcctl; load it with: source <(svcctl completion bash)
${LIVE_FUNCTION}
_svcctl() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" where="" word index choices service=() before=""
  # bash splits a word such as "condition=Ready" at the equals sign.
  if [[ "$current" == "=" ]]; then current=""; before="$previous="; previous="\${COMP_WORDS[COMP_CWORD-2]}"
  elif [[ "$previous" == "=" && $COMP_CWORD -gt 2 ]]; then before="\${COMP_WORDS[COMP_CWORD-2]}="; previous="\${COMP_WORDS[COMP_CWORD-3]}"
  fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$word" in
      ${pattern(globals)}) service+=("$word" "\${COMP_WORDS[index+1]}"); ((index++)); continue ;;
      ${pattern(valued)}) ((index++)); continue ;;
      -*) continue ;;
    esac
    case "\${where:+$where }$word" in
      ${paths.join('|')}) where="\${where:+$where }$word" ;;
    esac
  done
  COMPREPLY=()
  # "-f" of "logs" takes no value.
  if [[ "$previous" == "-f" && "$where" == *logs ]]; then previous=""; fi
  case "$previous" in
    ${pattern(valued.filter(({ path }) => path))}) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
${choiceCases.join('\n')}
    ${pattern(free)}) return ;;
    *) case "$where" in
${positionCases.join('\n')}
    esac ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$before$current")
  if [[ -n "$before" ]]; then COMPREPLY=("\${COMPREPLY[@]#"$before"}"); fi
}
complete -F _svcctl svcctl`;
}

/** zsh runs the bash script in its compatibility mode. */
function zshScript(all: readonly Position[], globals: readonly VerbOption[]): string {
  return bashScript(all, globals)
    .replace(
      /^# bash completion.*$/m,
      '# zsh completion of svcctl; load it with: source <(svcctl completion zsh)\nautoload -U +X bashcompinit && bashcompinit',
    )
    .replace('compopt -o filenames 2>/dev/null; ', '')
    .replaceAll(/mapfile -t COMPREPLY < <\((compgen .*?)\)(?=;|$)/gm, 'COMPREPLY=($${(f)"$$($1)"})');
}

/** Commands of fish for live lists. */
const FISH_LIVE: Readonly<Record<LiveList, string>> = {
  slots: '(svcctl get slots -o name 2>/dev/null | string replace "slot/" "")',
  'slot/NAME': '(svcctl get slots -o name 2>/dev/null)',
  models: '(svcctl get models -o name 2>/dev/null | string replace "model/" "")',
  profiles: '(svcctl profile list -o name 2>/dev/null | string replace "profile/" "")',
};

function fishScript(all: readonly Position[]): string {
  const lines = all.flatMap((position) => {
    const prefix = `complete -c svcctl -n ${quote(fishCondition(position, all))}`;
    const words = position.words.map(({ text, help }) => `${prefix} -f -a ${quote(text)} -d ${quote(help)}`);
    const live = position.live.map((list) => `${prefix} -f -a ${quote(FISH_LIVE[list])}`);
    const options = position.options.map((option) => {
      const names = flagsOf(option).map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`));
      const value = takesValue(option) ? (option.path ? ' -r' : ' -x') : '';
      const suggestions = suggestionsFor(option);
      const known = [...suggestions.texts, ...suggestions.live.map((list) => FISH_LIVE[list])].join(' ');
      const values = known === '' ? '' : ` -a ${quote(known)}`;
      return `${prefix} ${names.join(' ')}${value}${values} -d ${quote(option.help)}`;
    });
    return [...words, ...live, ...options];
  });
  return `# fish completion of svcctl; load it with: svcctl completion fish | source\ncomplete -c svcctl -f\n${lines.join('\n')}`;
}

function fishCondition({ path }: Position, all: readonly Position[]): string {
  if (path === '') return '__fish_use_subcommand';
  const below = all.filter((other) => other.path.startsWith(`${path} `)).map((other) => other.path.slice(path.length + 1));
  const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`);
  return [...seen, ...(below.length === 0 ? [] : [`not __fish_seen_subcommand_from ${below.join(' ')}`])].join('; and ');
}

const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
