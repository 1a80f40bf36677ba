/** What a Containerfile of a toolbox must keep to, as rules of one sentence each. Reads the text only: nothing is built. Pure. */

export interface Instruction {
  readonly name: string;
  /** With its continuation lines joined. */
  readonly text: string;
}

export interface Containerfile {
  readonly instructions: readonly Instruction[];
  /** Of all `ARG`, in order; undefined without a default. */
  readonly defaults: ReadonlyMap<string, string | undefined>;
}

/** Comments and empty lines are left out. */
export function parseContainerfile(text: string): Containerfile {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#'));
  const joined = lines.join('\n').replaceAll('\\\n', ' ').split('\n');
  const instructions = joined.map((line): Instruction => {
    const [, name = '', rest = ''] = /^\s*([A-Za-z]+)\s*(.*)$/.exec(line) ?? [];
    return { name: name.toUpperCase(), text: rest.replaceAll(/\s+/g, ' ').trim() };
  });
  const defaults = new Map<string, string | undefined>();
  for (const { name, text: argument } of instructions) {
    if (name !== 'ARG') continue;
    const [, key = '', value] = /^(\w+)(?:=(.*))?$/.exec(argument) ?? [];
    if (defaults.get(key) === undefined) defaults.set(key, value?.replaceAll(/^["']|["']$/g, ''));
  }
  return { instructions, defaults };
}

type Rule = (file: Containerfile) => readonly string[];

/** The text of each instruction of that name. */
const all = ({ instructions }: Containerfile, name: string): readonly string[] =>
  instructions.filter((each) => each.name === name).map(({ text }) => text);

/** What is in the last stage. */
function lastStage({ instructions, defaults }: Containerfile): Containerfile {
  return { instructions: instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM')), defaults };
}

/** What shells run, one by one. */
const commands = (file: Containerfile): readonly string[] =>
  all(file, 'RUN').flatMap((text) => text.split(/&&|;/).map((each) => each.trim()));

/** With a lock file, or a single package whose version is an argument. */
const isPinnedNpm = (command: string): boolean =>
  command.includes(' --ignore-scripts') &&
  (/^npm ci\b/.test(command) ||
    /^npm install (?:--?\S+ (?:\/\S+ )?|\$\{NPM_OPTIONS\} )*"[^" ]+(?: [^"@]+)?@\$\{\w+_VERSION\}"$/.test(command));

const complain = (texts: readonly string[], message: string): readonly string[] => texts.map((text) => `${message}: ${text.slice(0, 80)}`);

export const RULES: Readonly<Record<string, Rule>> = {
  'the base has a name and a tag that is not "latest", and can be another one': (file) => {
    const base = file.defaults.get('BASE') ?? '';
    const external = all(file, 'FROM').filter((text) => !/^(?:\$\{BASE\}|[a-z]+(?:-\$\{BACKEND\})?)(?: AS [a-z-]+)?$/.test(text));
    const isNamed = /^[a-z0-9.]+\/[a-z0-9/._-]+:(?!latest$)[\w.-]+(?:@sha256:[0-9a-f]{64})?$/.test(base);
    return [
      ...complain(external, 'Build FROM "${BASE}" or from a stage'),
      ...(isNamed ? [] : [`Name the base with its registry and tag: ${base}`]),
    ];
  },
  'packages of Debian come without recommendations and leave no lists behind': (file) =>
    complain(
      all(file, 'RUN').filter((text) => / install /.test(text) && /apt-get/.test(text) && !/--no-install-recommends/.test(text)),
      'Install without recommendations',
    ).concat(
      complain(
        all(lastStage(file), 'RUN').filter((text) => /apt-get/.test(text) && !/rm -rf [^&|]*\/var\/lib\/apt\/lists\/\*/.test(text)),
        'Remove the lists of apt in the same instruction',
      ),
    ),
  'nothing is fetched that is not compared with a pin': (file) =>
    complain(all(file, 'ADD'), 'Use COPY').concat(
      complain(
        all(file, 'RUN').filter((text) => /\b(?:curl|wget)\b.*https?:|\bcurl\b.*\$\{/.test(text) && !/sha256sum --check/.test(text)),
        'Compare the download with a SHA-256',
      ),
      complain(
        all(file, 'RUN').filter(
          (text) => /\bgit\b.*\b(?:clone|fetch)\b/.test(text) && !/rev-parse HEAD\)" = "\$\{\w+_COMMIT\}"/.test(text),
        ),
        'Compare what git fetched with a commit',
      ),
      complain(
        all(file, 'RUN').filter((text) => /\bpip install\b/.test(text) && !/--no-deps .*--requirement /.test(text)),
        'Name every package in a file of requirements',
      ),
      complain(
        commands(file).filter((command) => command.startsWith('npm ') && !isPinnedNpm(command)),
        'Install with "npm ci --ignore-scripts", or one package by its version',
      ),
      complain(
        all(file, 'RUN').filter((text) => /\|\s*(?:ba)?sh\b/.test(text)),
        'Do not run what was fetched',
      ),
      complain(
        [...file.defaults].filter(([key, value]) => key.endsWith('_VERSION') && !/^\d+\.\d+\.\d+$/.test(value ?? '')).map(([key]) => key),
        'Give a version three numbers',
      ),
      complain(
        [...file.defaults].filter(([key, value]) => key.endsWith('_COMMIT') && !/^[0-9a-f]{40}$/.test(value ?? '')).map(([key]) => key),
        'Give a commit 40 digits',
      ),
    ),
  'it runs as a user who is not root, or says who chooses the user': (file) => {
    const [user, ...more] = all(lastStage(file), 'USER');
    if (user !== '${RUN_AS}' || more.length > 0) return ['Set USER to "${RUN_AS}" once, in the last stage'];
    const [uid = ''] = (file.defaults.get('RUN_AS') ?? '').split(':');
    return /^[0-9]+$/.test(uid) ? [] : ['Give RUN_AS a number, which needs no account in the image'];
  },
  'it has labels that say what it is': (file) =>
    ['title', 'description', 'licenses']
      .filter((each) => !all(lastStage(file), 'LABEL').some((text) => text.includes(`org.opencontainers.image.${each}="`)))
      .map((each) => `Add the label "org.opencontainers.image.${each}"`),
  'it adds no arguments to those of the workload, and has one port': (file) => [
    ...(all(lastStage(file), 'ENTRYPOINT').join() === '[]' ? [] : ['Set ENTRYPOINT to "[]"']),
    ...(all(lastStage(file), 'CMD').length === 1 ? [] : ['Set CMD once']),
    ...(/^\d+$/.test(all(lastStage(file), 'EXPOSE').join()) ? [] : ['Set EXPOSE to one port']),
  ],
  'it contains no secrets and no volumes': (file) =>
    complain(all(file, 'VOLUME'), 'Leave out VOLUME').concat(
      complain(
        [...file.defaults.keys()].filter((key) => /TOKEN|PASSWORD|SECRET|_KEY$/.test(key)),
        'Take no secrets as arguments, which stay in the history of the image',
      ),
    ),
};

/** Each as `rule: what to do`. */
export function violations(text: string): readonly string[] {
  const file = parseContainerfile(text);
  return Object.entries(RULES).flatMap(([rule, check]) => check(file).map((each) => `${rule}: ${each}`));
}
