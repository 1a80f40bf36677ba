/** The Containerfiles of all toolboxes: what they must keep to, and the arguments that users may pass. Those that no test builds are held to the same rules as the others. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { planBuild } from '../../src/cli/decide/toolbox-plan.ts';
import { MODEL_PATHS_YAML } from '../../src/providers/image/decide/image-command.ts';
import { PROVIDERS } from '../../src/providers/registry.ts';
import { PROVIDER_KIND_NAMES, PROVIDER_KINDS } from '../../src/schema/slot/provider-kinds.ts';
import { eventually } from '../support/eventually.ts';
import { parseContainerfile, RULES, violations } from '../support/containerfile/containerfile-rules.ts';

const toolboxes = path.resolve(import.meta.dirname, '../../toolboxes');
const textOf = async (folder: string) => readFile(path.join(toolboxes, folder, 'Containerfile'), 'utf8');
const FOLDERS = ['gguf', 'image', 'npu', 'speech'] as const;

describe('the rules', () => {
  const GOOD = `ARG BASE=docker.io/library/debian:forky-slim
FROM \${BASE}
RUN apt-get update \\
 && apt-get install -y --no-install-recommends git \\
 && rm -rf /var/lib/apt/lists/*
LABEL org.opencontainers.image.title="a" org.opencontainers.image.description="b" org.opencontainers.image.licenses="MIT"
ARG RUN_AS=65534:65534
USER \${RUN_AS}
EXPOSE 8080
ENTRYPOINT []
CMD ["a"]
`;
  const rules = Object.keys(RULES);

  test('accept a file that keeps to them', () => {
    expect(violations(GOOD)).toEqual([]);
  });

  test.each<[string, (text: string) => string, number]>([
    ['a base without a tag', (text) => text.replace(':forky-slim', ''), 0],
    ['the tag "latest"', (text) => text.replace(':forky-slim', ':latest'), 0],
    ['a base that cannot be replaced', (text) => text.replace('FROM ${BASE}', 'FROM docker.io/library/debian:forky-slim'), 0],
    ['recommended packages', (text) => text.replace('--no-install-recommends ', ''), 1],
    ['the lists of apt', (text) => text.replace(/ \\\n && rm.*/, ''), 1],
    ['ADD', (text) => `${text}ADD https://a.example/b /b\n`, 2],
    ['a download without a hash', (text) => `${text}RUN curl --output /a https://a.example\n`, 2],
    ['a clone', (text) => `${text}RUN git clone https://a.example\n`, 2],
    ['an abbreviated commit', (text) => `${text}ARG A_COMMIT=6372219\n`, 2],
    ['packages of Python by name', (text) => `${text}RUN pip install torch\n`, 2],
    ['packages of npm without a lock file', (text) => `${text}RUN npm install left-pad\n`, 2],
    ['install scripts of npm', (text) => `${text}RUN npm ci\n`, 2],
    ['a package of npm in any version', (text) => `${text}RUN npm install --ignore-scripts left-pad\n`, 2],
    ['a script from the internet', (text) => `${text}RUN curl https://a.example | sh\n`, 2],
    ['no user', (text) => text.replace(/USER.*\n/, ''), 3],
    ['a user by name', (text) => text.replace('RUN_AS=65534:65534', 'RUN_AS=nobody'), 3],
    ['another user at the end', (text) => `${text}USER root\n`, 3],
    ['no licence', (text) => text.replace('licenses', 'x'), 4],
    ['an entrypoint', (text) => text.replace('[]', '["a"]'), 5],
    ['no port', (text) => text.replace(/EXPOSE.*\n/, ''), 5],
    ['a volume', (text) => `${text}VOLUME /models\n`, 6],
    ['a secret as an argument', (text) => `${text}ARG HF_TOKEN\n`, 6],
  ])('find %s', (_what, alter, rule) => {
    const found = violations(alter(GOOD)).map((each) => rules.findIndex((name) => each.startsWith(name)));
    expect(found).toContain(rule);
  });
});

test.each(FOLDERS)('toolboxes/%s/Containerfile keeps to the rules', async (folder) => {
  expect(violations(await textOf(folder))).toEqual([]);
});

test('every folder with an image is one of them, and belongs to a provider', async () => {
  const found = await Promise.all(
    (await readdir(toolboxes)).map(async (name) =>
      (await stat(path.join(toolboxes, name, 'Containerfile')).catch(() => undefined)) ? name : [],
    ),
  );
  expect(found.flat()).toEqual(FOLDERS);
  const built = PROVIDER_KIND_NAMES.map((kind) => planBuild(PROVIDERS, kind)).map((plan) =>
    typeof plan === 'string' ? plan : plan.folder,
  );
  expect(new Set(built)).toEqual(new Set(FOLDERS));
});

describe('the arguments', () => {
  const SECTIONS = { gguf: 'GGUF images', image: 'image for images', npu: 'image for NPUs', speech: 'image for speech' } as const;
  const ARGUMENTS = {
    gguf: ['BASE', 'BACKEND', 'APT_OPTIONS', 'RUN_AS'],
    image: ['BASE', 'APT_OPTIONS', 'PIP_OPTIONS', 'COMFYUI_COMMIT', 'COMFYUI_SOURCE', 'RUN_AS'],
    npu: ['BASE', 'FLM_DEB', 'FLM_SHA256', 'XRT_SUITE', 'APT_OPTIONS', 'MODELS', 'RUN_AS'],
    speech: ['BASE', 'APT_OPTIONS', 'NODE_VERSION', 'NPM_OPTIONS', 'NODE_EXTRA_CA_CERTS', 'RUN_AS'],
  } as const;

  test.each(FOLDERS)('of toolboxes/%s have defaults, are used, and are described for users', async (folder) => {
    const file = parseContainerfile(await textOf(folder));
    expect([...file.defaults.keys()]).toEqual(ARGUMENTS[folder]);
    const readme = await readFile(path.join(toolboxes, 'README.md'), 'utf8');
    const [, section = ''] = new RegExp(`^## Building the ${SECTIONS[folder]}\\n([^]*?)(?=^## |(?![^]))`, 'm').exec(readme) ?? [];
    const used = file.instructions
      .filter(({ name }) => name !== 'ARG')
      .map(({ text }) => text)
      .join('\n');
    for (const [name, value] of file.defaults) {
      expect([name, value]).toEqual([name, expect.any(String)]);
      // npm reads its variable itself.
      if (name !== 'NODE_EXTRA_CA_CERTS') expect(used).toContain(`\${${name}}`);
      expect(section).toContain(`\`${name}\``);
    }
  });

  test('"svcctl toolbox build" passes only arguments that the Containerfile has', async () => {
    for (const kind of PROVIDER_KIND_NAMES) {
      for (const backend of PROVIDER_KINDS[kind].backends) {
        const plan = planBuild(PROVIDERS, kind, backend);
        if (typeof plan === 'string') continue;
        const { defaults } = parseContainerfile(await textOf(plan.folder));
        for (const each of plan.buildArguments) expect([...defaults.keys()]).toContain(each.split('=')[0]);
      }
    }
  });

  test('each backend of the GGUF image has its stage', async () => {
    const stages = (await textOf('gguf')).matchAll(/ AS backend-(\w+)/g);
    expect(new Set([...stages].map(([, name]) => name))).toEqual(new Set(PROVIDER_KINDS.gguf.backends));
  });

  test('the port of an image is the one on which the provider expects its server', async () => {
    for (const kind of PROVIDER_KIND_NAMES) {
      const plan = planBuild(PROVIDERS, kind);
      if (typeof plan === 'string' || plan.folder === 'speech') continue;
      const port = parseContainerfile(await textOf(plan.folder)).instructions.find(({ name }) => name === 'EXPOSE')?.text;
      expect([kind, Number(port)]).toEqual([kind, PROVIDERS[kind]?.containerPort]);
    }
  });
});

describe('the image of ComfyUI', () => {
  const run = promisify(execFile);

  test('names every package with its version, and those of PyTorch with their hashes too', async () => {
    const packages = async (file: string) =>
      (await readFile(path.join(toolboxes, 'image', file), 'utf8')).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const torch = await packages('torch-rocm.txt');
    for (const line of torch) expect(line).toMatch(/^[a-z-]+==[\w.+]+ --hash=sha256:[0-9a-f]{64}$/);
    const rest = await packages('requirements.txt');
    for (const line of rest) expect(line).toMatch(/^[a-z0-9-]+==[\w.]+$/);
    const names = [...torch, ...rest].map((line): string => line.split('==')[0] ?? '');
    expect(new Set(names).size).toBe(names.length);
    expect(names.slice(torch.length)).toEqual(names.slice(torch.length).toSorted());
  });

  test('searches models where the provider says', async () => {
    expect(await readFile(path.join(toolboxes, 'image/model-paths.yaml'), 'utf8')).toBe(MODEL_PATHS_YAML);
  });

  test('starts ComfyUI with the arguments of the workload, writes below one directory only, and removes what is old', async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'svc-comfyui-'));
    try {
      // In the place of Python: it writes down its arguments, and ends when it is told to.
      await writeFile(
        path.join(dir, 'python3'),
        `#!/bin/sh\nprintf '%s\\n' "$@" > ${dir}/arguments\nuntil [ -e ${dir}/stop ]; do sleep 0.05; done\n`,
        {
          mode: 0o755,
        },
      );
      const home = path.join(dir, 'home');
      await mkdir(path.join(home, 'output/svc'), { recursive: true });
      const [old, young] = [path.join(home, 'output/svc/old.png'), path.join(home, 'output/svc/young.png')];
      for (const file of [old, young]) await writeFile(file, '');
      await utimes(old, 0, 0);
      const env = {
        PATH: `${dir}:${process.env['PATH'] ?? ''}`,
        COMFYUI_HOME: home,
        COMFYUI_PROGRAM: '/opt/comfyui',
        COMFYUI_SWEEP_SECONDS: '0.1',
      };
      const ended = run(path.join(toolboxes, 'image/comfyui'), ['--listen', '0.0.0.0', '--cpu'], { env });
      await eventually('the old file is gone', async () => (await stat(old).catch(() => undefined)) === undefined);
      await writeFile(path.join(dir, 'stop'), '');
      await ended;
      expect((await stat(young)).isFile()).toBe(true);
      expect((await readFile(path.join(dir, 'arguments'), 'utf8')).trim().split('\n')).toEqual([
        '/opt/comfyui/main.py',
        '--base-directory',
        home,
        '--extra-model-paths-config',
        '/opt/comfyui/model-paths.yaml',
        '--front-end-root',
        `${home}/page`,
        '--database-url',
        'sqlite:///:memory:',
        '--listen',
        '0.0.0.0',
        '--cpu',
      ]);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
