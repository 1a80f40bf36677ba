/**
 * Watches the state directory. If it is moved, emptied or replaced, the service keeps serving, and writes everything
 * again once a directory exists there. It never creates it, so that the old one can be moved back.
 */
import { stat } from 'node:fs/promises';
import { lockDirectory, type DirectoryLock, type LockAnswer } from '../files/directory-lock.ts';
import type { Log } from '../platform/log.ts';
import { fail, ok, type Result } from '../schema/words/failure.ts';
import type { Settings } from '../schema/settings/settings.ts';

interface GuardStateOptions {
  readonly directory: string;
  readonly lock: DirectoryLock;
  readonly lockAgain: () => Promise<LockAnswer>;
  readonly files: { retry(): void; renew(): void };
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
  /** Default: 2 s. A check costs one `stat`. */
  readonly everyMs?: number;
}

const EVERY_MS = 2000;

type Place = 'in-place' | 'missing' | 'taken';

export function guardState(options: GuardStateOptions) {
  const { directory, files, log } = options;
  let lock = options.lock;
  let last: Place = 'in-place';
  let checking = false;
  let closed = false;

  async function look(): Promise<Place> {
    if (await lock.isInPlace()) return 'in-place';
    const facts = await stat(directory).catch(() => undefined);
    if (facts?.isDirectory() !== true) return 'missing';
    const again = await options.lockAgain();
    if (again.kind === 'held') return 'taken';
    if (again.kind === 'unusable') return 'missing';
    lock.release();
    lock = again.lock;
    if (closed) lock.release();
    if (last === 'in-place')
      log.warn({ directory }, `The state directory "${directory}" was replaced or emptied; what is known is written again`);
    return 'in-place';
  }

  async function check(): Promise<void> {
    const before = lock;
    const place = await look();
    if (place !== last) report(place);
    if (place === 'in-place') {
      if (lock !== before) files.renew();
      else files.retry();
    }
    last = place;
  }

  function report(place: Place): void {
    if (place === 'in-place') return log.info({ directory }, `The state directory "${directory}" is back and in use`);
    const meanwhile = 'slots that run keep running and serving, but nothing is recorded, and nothing can be started';
    const lost = `The state directory "${directory}" cannot be used: put it back, or create it empty. Until then ${meanwhile}`;
    if (place === 'missing') return log.error({ directory }, lost);
    log.error({ directory }, `Another service uses "${directory}", which replaced the state directory of this one: stop it`);
  }

  const timer = setInterval(() => {
    if (checking) return;
    checking = true;
    void check().finally(() => (checking = false));
  }, options.everyMs ?? EVERY_MS);
  timer.unref();
  return {
    close(): void {
      closed = true;
      clearInterval(timer);
      lock.release();
    },
  };
}

export interface DirectoryLocks {
  readonly state: DirectoryLock;
  lockStateAgain(): Promise<LockAnswer>;
  release(): void;
}

type LockSettings = Pick<Settings, 'SVC_STATE_DIR' | 'SVC_CONFIG_DIR'>;

/** Two services with the same configuration directory would both start its slots. In a cluster it is not writable. */
export async function lockDirectories(settings: LockSettings, since: number, log: Pick<Log, 'debug'>): Promise<Result<DirectoryLocks>> {
  const { SVC_STATE_DIR: stateDir, SVC_CONFIG_DIR: configDir } = settings;
  const lockState = async (): Promise<LockAnswer> => await lockDirectory({ directory: stateDir, name: 'service', since });
  const state = await lockState();
  if (state.kind === 'held') return inUse('SVC_STATE_DIR', stateDir, state.holder);
  if (state.kind === 'unusable') {
    const message = `Cannot write to "${stateDir}": make it writable, or set "SVC_STATE_DIR" to another directory (${state.message})`;
    return fail('stalled', 'SettingUnusable', message);
  }
  const config = await lockDirectory({ directory: configDir, name: '.service', since });
  if (config.kind === 'held') {
    state.lock.release();
    return inUse('SVC_CONFIG_DIR', configDir, config.holder);
  }
  if (config.kind === 'unusable') log.debug({ directory: configDir, error: config.message }, 'The configuration directory is not locked');
  return ok({
    state: state.lock,
    lockStateAgain: lockState,
    release() {
      state.lock.release();
      if (config.kind === 'locked') config.lock.release();
    },
  });
}

function inUse(key: keyof LockSettings, directory: string, holder: string): Result<never> {
  const message = `The directory "${directory}" is locked, because ${holder} already uses it: stop that service first, or set "${key}" to another directory`;
  return fail('stalled', 'SettingUnusable', message);
}
