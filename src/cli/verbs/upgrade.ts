/**
 * `svcctl upgrade engine`: asks a new build of a model server, tries it out, and moves slots to it one by one. It edits
 * the files of slots, as their owner does by hand: a caller of the API may not choose programs.
 */
import { rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { readRegularFile } from '../../files/regular-file.ts';
import { explainWriteError, ifThere, writeJsonAtomically, type FileOwner } from '../../files/write-file.ts';
import { createTomlEditor } from '../../host/slots/toml-editor.ts';
import { parseJson } from '../../platform/decide/parse-json.ts';
import type { ProgramOptions, Provider } from '../../providers/provider.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import { companionsOf } from '../../schema/slot/model-options.ts';
import type { StoredSlot } from '../../schema/slot/slot-editor.ts';
import { parseSlot, type SlotSpec } from '../../schema/slot/slot-spec.ts';
import { SlotProgram } from '../../schema/slot/toolbox-images.ts';
import { isSameValue } from '../../schema/words/same-value.ts';
import { askBuild, openTrialService, type TrialService } from '../checks/trial-service.ts';
import type { SlotAnswer } from '../connect/api-answers.ts';
import { slotPath, type Client } from '../connect/client.ts';
import { deadlineOf, UP_TO_DATE, waitForSlot } from '../connect/wait-for-slot.ts';
import {
  judgeUndo,
  judgeUpgrade,
  programPatch,
  recordMove,
  refusedArguments,
  trialDocument,
  UpgradeRecord,
  withoutMove,
  type CheckedSlot,
  type Trial,
  type UpgradedSlot,
} from '../decide/engine-upgrade.ts';
import { configDirOf, stateDirOf, withServiceSettings, type Environment } from '../installation.ts';
import { CliFailure, EXIT, usageFailure, type ExitCode } from '../output/exit-codes.ts';
import { cellText, listText, type Column, type OutputOptions } from '../output/output.ts';
import { withoutControls } from '../output/terminal.ts';
import type { Cli } from '../verb.ts';

interface UpgradeOptions extends OutputOptions {
  readonly image?: string;
  readonly path?: string;
  readonly undo?: boolean;
  readonly check?: boolean;
  readonly slots?: string;
  readonly timeout: string;
}

/** One slot of the provider, as its file and the service have it. */
interface Candidate {
  readonly stored: StoredSlot;
  readonly spec: SlotSpec;
  readonly answer: SlotAnswer;
}

interface Session {
  readonly cli: Cli;
  readonly options: UpgradeOptions;
  readonly provider: Provider;
  readonly env: Environment;
  readonly client: Client;
  readonly editor: ReturnType<typeof createTomlEditor>;
  /** The user of the service, where this one is root. */
  readonly owner: FileOwner | undefined;
}

const COLUMNS: readonly Column<UpgradedSlot>[] = [
  { title: 'SLOT', cell: ({ slot }) => slot },
  { title: 'FLAGS', cell: ({ flags }) => flags },
  { title: 'START', cell: ({ start }) => start },
  { title: 'RESULT', cell: ({ result }) => result },
  { title: 'MESSAGE', cell: ({ message }) => cellText(message) },
];
/** The service itself needs a few seconds before it starts the first slot. */
const TRIAL_OVERHEAD_MS = 30_000;

export async function runUpgradeEngine(cli: Cli, options: UpgradeOptions, kind: string): Promise<ExitCode> {
  deadlineOf(cli, options.timeout);
  if ([options.image, options.path, options.undo].filter((each) => each !== undefined).length !== 1)
    throw usageFailure('Name one build', 'Use --image, --path or, to return to the builds before the last upgrade, --undo');
  const session = await openSession(cli, options, kind);
  if (options.undo === true) return await undoUpgrade(session);
  const { provider } = session;
  const program = await programOf(session);
  const candidates = await findCandidates(session);
  const offered = await askBuild(session, provider, program);
  if (offered === undefined) throw new CliFailure(`The build is no ${provider.program}: it did not list its flags`);
  const checked = await checkAll(session, candidates, program, offered);
  const rows = checked.map(judgeUpgrade);
  const done = options.check === true ? rows : await moveAll(session, candidates, program, rows);
  await cli.terminal.write(await listText(cli.terminal, options.output, { key: 'slots', columns: COLUMNS, items: done }));
  return done.every(({ result }) => FINE.has(result)) ? EXIT.done : EXIT.failed;
}

const FINE: ReadonlySet<string> = new Set(['can move', 'moved', 'unchanged']);

async function openSession(cli: Cli, options: UpgradeOptions, kind: string): Promise<Session> {
  const provider = Object.values<Provider>(PROVIDERS).find((each) => each.kind === kind);
  if (provider?.help === undefined)
    throw usageFailure(`Builds of provider "${kind}" cannot be asked for their flags`, 'Name a new build in "program" of each slot');
  const env = withServiceSettings(cli.env);
  const client = await cli.connect(options);
  if (client.namespace !== undefined)
    throw usageFailure('A build is asked on the machine where slots run', 'In a cluster, set "program.image" of a SlotSpec');
  const facts = process.getuid?.() === 0 ? await stat(stateDirOf(env)).catch(() => undefined) : undefined;
  const owner = facts === undefined || facts.uid === 0 ? undefined : { uid: facts.uid, gid: facts.gid };
  return { cli, options, provider, env, client, owner, editor: createTomlEditor({ directory: path.join(configDirOf(env), 'slots') }) };
}

async function programOf({ client, options }: Session): Promise<SlotProgram> {
  const { runtime } = await client.request('GET', '/api/status', 'status');
  const key = runtime === 'process' ? 'path' : 'image';
  const value = options[key];
  if (value === undefined)
    throw usageFailure(
      runtime === 'process' ? 'Slots run as processes here, without images' : 'Slots run in containers here, which need an image',
      `Use --${key}`,
    );
  const parsed = SlotProgram.safeParse({ [key]: value });
  if (!parsed.success) throw usageFailure(`Invalid --${key} "${value}"`, parsed.error.issues[0]?.message);
  return parsed.data;
}

async function findCandidates({ client, editor, provider, options }: Session): Promise<readonly Candidate[]> {
  const { slots: answers } = await client.request('GET', '/api/slots', 'slots');
  const wanted = options.slots?.split(',').map((each) => each.trim());
  const all = (await editor.list()).flatMap((stored): readonly Candidate[] => {
    const parsed = parseSlot(stored.name, stored.document ?? {});
    const answer = answers.find(({ name }) => name === stored.name);
    return parsed.ok && parsed.spec.provider === provider.kind && answer !== undefined ? [{ stored, spec: parsed.spec, answer }] : [];
  });
  const unknown = wanted?.find((each) => !all.some(({ stored }) => stored.name === each));
  if (unknown !== undefined) throw usageFailure(`No slot "${unknown}" of provider "${provider.kind}" has a valid file here`);
  const found = all.filter(({ stored }) => wanted?.includes(stored.name) !== false);
  if (found.length === 0) throw new CliFailure(`No slot of provider "${provider.kind}" has a valid file here`);
  const other = found.find(({ stored, answer }) => answer.resource_version !== stored.resourceVersion);
  if (other !== undefined)
    throw new CliFailure(`The service does not have the file of slot "${other.stored.name}" that is here`, {
      hint: 'Run this on the machine of the service, with its SVC_CONFIG_DIR and SVC_STATE_DIR',
    });
  const backends = new Set(found.flatMap(({ answer, spec }) => answer.status.backend ?? (spec.backendGiven ? spec.backend : [])));
  if (options.image !== undefined && backends.size > 1)
    throw usageFailure(
      `An image is for one backend, and these slots use ${[...backends].join(', ')}`,
      'Name those of one backend with --slots',
    );
  return found;
}

/** One slot at a time, so that each has the memory that is free. */
async function checkAll(session: Session, candidates: readonly Candidate[], program: SlotProgram, offered: ProgramOptions) {
  const { cli, env, owner, provider, client } = session;
  const { models } = await client.request('GET', '/api/models', 'models');
  const here = new Set(models.filter(({ present }) => present).map(({ id }) => id));
  let service: TrialService | undefined;
  const tryOut = async ({ stored, spec }: Candidate): Promise<Trial> => {
    const missing = [spec.model.default, ...companionsOf(spec)].find((id) => !here.has(id));
    if (missing !== undefined) return { kind: 'skipped', message: `Its model "${missing}" is not on this machine` };
    cli.terminal.progress({ text: `Trying out ${stored.name}`, step: stored.name });
    service ??= await openTrialService({ env, owner, runtime: program.path === undefined ? 'podman' : 'process' });
    return await service.tryOut(trialDocument(stored.document ?? {}, spec, program), spec.lifecycle.startTimeoutMs + TRIAL_OVERHEAD_MS);
  };
  const checked: CheckedSlot[] = [];
  try {
    for (const each of candidates) {
      const refused = refusedArguments(provider, each.spec, offered);
      const problem = each.spec.rollout?.paused === true ? 'Its rollouts are paused' : undefined;
      const trial = refused === undefined && problem === undefined ? await tryOut(each) : ({ kind: 'skipped', message: '' } as const);
      checked.push({
        slot: each.stored.name,
        refused,
        problem,
        trial,
        isThere: isSameValue(each.spec.program, { ...each.spec.program, ...program }),
      });
    }
  } finally {
    await service?.close();
    cli.terminal.endProgress();
  }
  return checked;
}

/** Moves slot by slot; the first one that does not come up is put back, and the others stay where they are. */
async function moveAll(session: Session, candidates: readonly Candidate[], program: SlotProgram, rows: readonly UpgradedSlot[]) {
  const done: UpgradedSlot[] = [];
  let failed: string | undefined;
  for (const row of rows) {
    const candidate = candidates.find(({ stored }) => stored.name === row.slot);
    if (row.result !== 'can move' || candidate === undefined) done.push(row);
    else if (failed !== undefined)
      done.push({ ...row, result: 'not moved', message: `Slot "${failed}" did not come up with the new build` });
    else {
      const why = await moveOne(session, candidate, program);
      if (why !== undefined) failed = row.slot;
      done.push(why === undefined ? { ...row, result: 'moved' } : { ...row, result: 'put back', message: why });
    }
  }
  return done;
}

/** Returns why the slot was put back; undefined if it runs the new build. */
async function moveOne(session: Session, { stored, spec }: Candidate, program: SlotProgram): Promise<string | undefined> {
  const { name } = stored;
  const record = await readRecord(session);
  const before = spec.program;
  const after = { ...before, ...program };
  // First, so that an upgrade that is killed can be undone.
  await writeRecord(session, recordMove(record, program, { slot: name, after, ...(before === undefined ? {} : { before }) }));
  const version = await edit(session, stored, after);
  const why = await waitUntilInForce(session, name);
  if (why === undefined) return undefined;
  await edit(session, { name, resourceVersion: version }, before);
  const still = await waitUntilInForce(session, name);
  // An earlier upgrade can still be undone.
  await writeRecord(session, record ?? { program, moved: [] });
  return still === undefined ? why : `${why}; with its build before, ${still}`;
}

async function undoUpgrade(session: Session): Promise<ExitCode> {
  const { editor, options, cli, provider } = session;
  if (options.check === true || options.slots !== undefined)
    throw usageFailure('--undo returns all slots that the last upgrade moved', 'Leave out --check and --slots');
  const record = await readRecord(session);
  if (record === undefined) throw new CliFailure(`No upgrade of "${provider.kind}" is recorded here`);
  let left = record;
  let isDone = true;
  for (const move of record.moved.toReversed()) {
    const stored = await editor.read(move.slot);
    const verdict = judgeUndo(move, stored?.document);
    if (verdict === 'put back' && stored !== undefined) {
      await edit(session, stored, move.before);
      const why = await waitUntilInForce(session, move.slot);
      isDone &&= why === undefined;
      cli.terminal.line(`slot/${move.slot} put back${why === undefined ? '' : `: ${why}`}`);
    } else cli.terminal.line(`slot/${move.slot} left as it is: ${WHY_LEFT[verdict]}`);
    left = withoutMove(left, move.slot);
    await writeRecord(session, left);
  }
  return isDone ? EXIT.done : EXIT.failed;
}

const WHY_LEFT = {
  'put back': 'it is gone',
  unchanged: 'it runs its build before',
  edited: 'its build was changed after the upgrade',
  gone: 'it is gone',
} as const;

/** Returns the version of the edited text. */
async function edit(
  { editor }: Session,
  { name, resourceVersion }: Pick<StoredSlot, 'name' | 'resourceVersion'>,
  program: SlotProgram | undefined,
) {
  const result = await editor.patch(name, programPatch(program), { ifMatch: resourceVersion });
  if (result.kind === 'done') return result.slot.resourceVersion;
  const why =
    result.kind === 'failed'
      ? result.message
      : result.kind === 'invalid'
        ? (result.problems[0]?.message ?? '')
        : 'it was changed meanwhile';
  throw new CliFailure(`Slot "${name}" cannot be edited: ${withoutControls(why)}`, {
    hint: 'Run this as the user of the service, and start the upgrade again',
  });
}

/** Returns why the newest text cannot take effect. */
async function waitUntilInForce({ cli, client, options }: Session, name: StoredSlot['name']): Promise<string | undefined> {
  const deadline = deadlineOf(cli, options.timeout);
  try {
    const { generation } = await client.request('GET', slotPath(name), 'slot');
    await waitForSlot(cli, client, { name, goal: UP_TO_DATE, deadline, generation });
    return undefined;
  } catch (error) {
    if (error instanceof CliFailure) return error.message;
    throw error;
  }
}

const recordFile = ({ env, provider }: Session): string => path.join(stateDirOf(env), `upgrade-${provider.kind}.json`);

async function readRecord(session: Session): Promise<UpgradeRecord | undefined> {
  return UpgradeRecord.safeParse(parseJson((await ifThere(readRegularFile(recordFile(session)))) ?? '')).data;
}

async function writeRecord(session: Session, record: UpgradeRecord): Promise<void> {
  const file = recordFile(session);
  if (record.moved.length === 0) return await rm(file, { force: true });
  await writeJsonAtomically(file, record, 0o600).catch((error: unknown) => {
    throw new CliFailure(`The upgrade cannot be recorded: ${explainWriteError(file, error)}`, {
      hint: 'Run this as the user of the service',
    });
  });
}
