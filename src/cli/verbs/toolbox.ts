/** `svcctl toolbox list|build|pull|verify`. Uses the files and the podman of this machine, not the service. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { readRegularFile } from '../../files/regular-file.ts';
import { checkToolboxFile, createToolboxSource, referenceOf } from '../../files/toolbox-manifest.ts';
import { ifThere, writeFileAtomically } from '../../files/write-file.ts';
import { codeOf } from '../../platform/error-text.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import { BACKENDS, PROVIDER_KIND_NAMES, PROVIDER_KINDS, type Backend, type ProviderKind } from '../../schema/slot/provider-kinds.ts';
import { formatProblem } from '../../schema/slot/spec-problem.ts';
import type { ToolboxImage } from '../../schema/slot/toolbox-images.ts';
import { buildCommand, judgeImage, parseImageId, pinText, planBuild, withPin, type PinState } from '../decide/toolbox-plan.ts';
import { CHECKOUT, configDirOf, TOOLBOX_MANIFEST, withCheckoutSettings } from '../installation.ts';
import { CliFailure, EXIT, type ExitCode } from '../output/exit-codes.ts';
import { listText, type Column, type OutputOptions } from '../output/output.ts';
import type { Cli } from '../verb.ts';

export interface ToolboxOptions {
  readonly checkout?: boolean;
}

interface Entry {
  readonly provider: ProviderKind;
  readonly backend: Backend;
  readonly image: string;
  readonly pin: string;
  readonly state?: PinState;
}

const FILE_MODE = 0o644;
const INSPECT_WITHIN_MS = 30_000;

const COLUMNS: readonly Column<Entry>[] = [
  { title: 'PROVIDER', cell: ({ provider }) => provider },
  { title: 'BACKEND', cell: ({ backend }) => backend },
  { title: 'IMAGE', cell: ({ image }) => image },
  { title: 'PIN', cell: ({ pin }) => pin },
];
const STATE: Column<Entry> = { title: 'STATE', cell: ({ state }) => state ?? '' };

export async function runToolboxList(cli: Cli, options: ToolboxOptions & OutputOptions): Promise<void> {
  const items = (await readEntries(cli, options)).map(({ entry }) => entry);
  await cli.terminal.write(await listText(cli.terminal, options.output, { key: 'toolboxes', columns: COLUMNS, items }));
}

export async function runToolboxVerify(cli: Cli, options: ToolboxOptions & OutputOptions): Promise<ExitCode> {
  const entries = await readEntries(cli, options);
  const items = await Promise.all(
    entries.map(async ({ entry, image }): Promise<Entry> => {
      const { reference } = referenceOf(image) ?? {};
      return { ...entry, state: judgeImage(image, reference === undefined ? undefined : await imageIdOf(cli, reference)) };
    }),
  );
  await cli.terminal.write(await listText(cli.terminal, options.output, { key: 'toolboxes', columns: [...COLUMNS, STATE], items }));
  return items.some(({ state }) => state === 'different') ? EXIT.failed : EXIT.done;
}

export async function runToolboxPull(cli: Cli, options: ToolboxOptions, provider?: string): Promise<void> {
  const chosen = (await readEntries(cli, options)).filter(({ entry }) => provider === undefined || entry.provider === provider);
  const published = new Set(
    chosen.flatMap(({ image }) => referenceOf(image)?.reference ?? []).filter((each) => !each.startsWith('localhost/')),
  );
  if (published.size === 0) {
    const what = provider === undefined ? '' : ` for provider "${provider}"`;
    throw new CliFailure(`Nothing to pull${what}: no image is published`, { hint: 'Build one with "svcctl toolbox build"' });
  }
  for (const reference of published) await runPodman(cli, ['pull', reference]);
}

export async function runToolboxBuild(
  cli: Cli,
  options: ToolboxOptions & { readonly buildArg?: readonly string[] },
  provider: string,
  backend?: string,
): Promise<void> {
  const kind = PROVIDER_KIND_NAMES.find((each) => each === provider);
  const chosen = BACKENDS.find((each) => each === backend);
  const plan = kind === undefined ? `Unknown provider "${provider}"` : planBuild(PROVIDERS, kind, chosen);
  if (typeof plan === 'string') throw new CliFailure(plan, { exitCode: EXIT.usage });
  const file = ownFile(cli, options);
  const problems = (await checkToolboxFile(file)) ?? [];
  if (problems.length > 0)
    throw new CliFailure(problems.map((problem) => formatProblem(problem)).join('; '), { hint: 'Fix the file first' });
  const directory = await mkdtemp(path.join(tmpdir(), 'svc-toolbox-'));
  try {
    const idFile = path.join(directory, 'id');
    const context = path.join(CHECKOUT, 'toolboxes', plan.folder);
    await runPodman(cli, buildCommand(plan, { own: options.buildArg ?? [], context, idFile }));
    const id = parseImageId(await readFile(idFile, 'utf8'));
    if (id === undefined) throw new CliFailure('podman did not report the id of the image');
    const before = (await ifThere(readRegularFile(file))) ?? '';
    const text = plan.entries.reduce((all, [kind, each]) => withPin(all, kind, each, { image: plan.image, by: 'id', sha256: id }), before);
    await writeFileAtomically(file, text, { mode: FILE_MODE });
    await cli.terminal.write(`Built "${plan.image}" and pinned it in "${file}"\n`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function ownFile({ env }: Cli, { checkout }: ToolboxOptions): string {
  return path.join(configDirOf(checkout === true ? withCheckoutSettings(env) : env), 'toolboxes.toml');
}

async function readEntries(cli: Cli, options: ToolboxOptions): Promise<readonly { readonly entry: Entry; readonly image: ToolboxImage }[]> {
  const ignore = (): void => undefined;
  const source = createToolboxSource({ shipped: TOOLBOX_MANIFEST, local: ownFile(cli, options), log: { info: ignore, warn: ignore } });
  const { manifest, problems } = await source.read();
  if (problems.length > 0) throw new CliFailure(problems.map((problem) => formatProblem(problem)).join('; '));
  return PROVIDER_KIND_NAMES.flatMap((provider) =>
    PROVIDER_KINDS[provider].backends.flatMap((backend) => {
      const image = manifest[provider]?.[backend];
      return image === undefined ? [] : [{ image, entry: { provider, backend, image: image.image, pin: pinText(image) } }];
    }),
  );
}

/** Undefined if podman does not have the image. */
async function imageIdOf({ env }: Cli, reference: string): Promise<string | undefined> {
  const args = ['image', 'inspect', '--format', '{{.Id}}', reference];
  const found = await promisify(execFile)('podman', args, { env, timeout: INSPECT_WITHIN_MS }).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') throw noPodman();
    return undefined;
  });
  return found && parseImageId(found.stdout);
}

/** The output of podman goes to the terminal. */
async function runPodman({ env }: Cli, args: readonly string[]): Promise<void> {
  const child = spawn('podman', args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'close').catch((error: unknown) => {
    throw codeOf(error) === 'ENOENT' ? noPodman() : error;
  });
  if (code !== 0) throw new CliFailure(`"podman ${args[0]}" failed with exit code ${code}`);
}

const noPodman = (): CliFailure => new CliFailure('"podman" not found on the PATH', { hint: 'Install podman' });
