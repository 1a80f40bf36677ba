/** Opens the repository that declares the configuration of this host (`SVC_GIT_URL`), and guards what it declares. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import path from 'node:path';
import { readRegularFile } from '../files/regular-file.ts';
import { createDecrypt, createGitRepository } from '../host/source/git-repository.ts';
import { createGitSource } from '../host/source/git-source.ts';
import { createSourceFiles } from '../host/source/source-files.ts';
import { versionOf } from '../host/slots/toml-editor.ts';
import { createClock } from '../platform/clock.ts';
import { messageOf } from '../platform/error-text.ts';
import { createKeyedLock } from '../platform/semaphore.ts';
import { scheduledAt } from '../reconciler/decide/rules/warm-schedule.ts';
import type { SlotSource } from '../reconciler/ports.ts';
import type { RevisionStore } from '../schema/slot/revision-store.ts';
import type { EditResult, SlotEditor, SlotTextEditor } from '../schema/slot/slot-editor.ts';
import type { ConfigSource } from '../schema/status/config-source.ts';
import type { SlotName } from '../schema/words/names.ts';
import type { ServiceOptions, World } from './world.ts';

type Editor = SlotEditor & SlotTextEditor;

interface HistoryParts extends Pick<World, 'sinks' | 'stop'> {
  readonly revisions?: RevisionStore;
}

interface OpenedSource {
  readonly world: HistoryParts & Pick<World, 'repository' | 'start'>;
  guard(editor: Editor): Editor;
  /** Reads by passes, and changes of several files, do not overlap then. */
  hold<Inputs extends Pick<World, 'source'>>(inputs: Inputs): Inputs;
}

/** Finishes first what a killed service has begun to apply. Throws if it is not known what the repository declared. */
export async function openSource(options: ServiceOptions, slots: SlotSource, history: HistoryParts): Promise<OpenedSource> {
  const { settings } = options;
  const { SVC_GIT_URL: url, SVC_GIT_SELF_HEAL: selfHeal } = settings;
  const { revisions } = history;
  if (url === undefined) return { world: { ...history, start: () => undefined }, guard: (editor) => editor, hold: (inputs) => inputs };
  const lock = createKeyedLock();
  const exclusive = async <T>(work: () => Promise<T>): Promise<T> => await lock('configuration', work);
  const opened = createSource(options, { url, revisions, exclusive });
  await opened.open();
  const { source } = opened;
  const leaving = new AbortController();
  let running: Promise<void> | undefined;
  return {
    world: {
      ...history,
      ...(revisions === undefined ? {} : { revisions: { ...revisions, ...managerIn(source, url) } }),
      repository: source,
      start() {
        slots.changes(() => void opened.check(), leaving.signal);
        running = opened.run();
      },
      async stop() {
        leaving.abort();
        await Promise.all([opened.stop(), history.stop()]);
        await running;
      },
    },
    guard: (editor) => (selfHeal === 'on' ? guardEditor(editor, source, url) : editor),
    hold: (inputs) => ({
      ...inputs,
      source: { ...inputs.source, read: async (signal) => await exclusive(async () => await inputs.source.read(signal)) },
    }),
  };
}

interface CreateSource {
  readonly url: string;
  readonly revisions: RevisionStore | undefined;
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>;
}

function createSource({ settings, log, env }: ServiceOptions, { url, revisions, exclusive }: CreateSource) {
  const { SVC_CHANGE_WINDOWS: windows, SVC_CONFIG_DIR: configDir, SVC_STATE_DIR: stateDir } = settings;
  const directory = path.join(stateDir, 'source');
  const zone = settings.SVC_TIME_ZONE ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const found = { ...settings, SVC_GIT_URL: url };
  return createGitSource({
    settings: found,
    tree: createGitRepository({ settings: found, directory, env }),
    files: createSourceFiles({ configDir, directory, exclusive }),
    clock: createClock(),
    log,
    window(wallNow) {
      const { entry, until } = scheduledAt(windows ?? [], zone, wallNow);
      return { isOpen: windows === undefined || entry !== undefined, until };
    },
    attribute: (slot, text, who) => revisions?.attribute(slot, versionOf(text), { who }),
    decrypt: settings.SVC_GIT_DECRYPT && createDecrypt(settings.SVC_GIT_DECRYPT, env),
    isSigned: createSignatureCheck(settings.SVC_GIT_WEBHOOK_SECRET_FILE, (problem) => log.warn({}, problem)),
  });
}

const managerIn = (source: ConfigSource, url: string): Pick<RevisionStore, 'managerOf' | 'commitOf'> => ({
  managerOf: async (slot) => (source.commitOf(slot) === undefined ? undefined : url),
  commitOf: source.commitOf,
});

/** Refuses edits that would be put back. A restart of the server is none. */
function guardEditor(editor: Editor, source: ConfigSource, url: string): Editor {
  const refuse = (slot: SlotName): Extract<EditResult, { kind: 'managed' }> | undefined => {
    const commit = source.commitOf(slot);
    if (commit === undefined) return undefined;
    const how = `edit "slots/${slot}.toml" there, or stop this with "svcctl source suspend"`;
    return {
      kind: 'managed',
      message: `"${url}" declares slot "${slot}" (commit ${commit.slice(0, 12)}), and edits here would be put back: ${how}`,
    };
  };
  return {
    ...editor,
    put: async (slot, ...more) => refuse(slot) ?? (await editor.put(slot, ...more)),
    patch: async (slot, patch, ...more) =>
      (Object.keys(patch).every((key) => key === 'restartedAt') ? undefined : refuse(slot)) ?? (await editor.patch(slot, patch, ...more)),
    remove: async (slot, ...more) => refuse(slot) ?? (await editor.remove(slot, ...more)),
    async putTexts(edits) {
      for (const { name } of edits) {
        const refused = refuse(name);
        if (refused !== undefined) return refused;
      }
      return await editor.putTexts(edits);
    },
  };
}

const LEAST_SECRET = 16;

/** The secret is read again for each webhook. Without one, no signature is valid. */
export function createSignatureCheck(file: string | undefined, onProblem: (message: string) => void): ConfigSource['isSigned'] {
  return async (body, signature) => {
    if (file === undefined) return false;
    try {
      const secret = (await readRegularFile(file)).trim();
      if (secret.length < LEAST_SECRET) throw new Error(`it has fewer than ${LEAST_SECRET} characters`);
      const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
      const given = Buffer.from(signature);
      return given.length === expected.length && timingSafeEqual(given, expected);
    } catch (error) {
      onProblem(`The secret of webhooks in "${file}" cannot be used: ${messageOf(error)}`);
      return false;
    }
  };
}
