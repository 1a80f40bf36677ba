/** Suites that need podman, as `scripts/test-podman.sh` sets it up: without it they are skipped loudly, or fail where it is required. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll } from '@jest/globals';
import { describeWith } from './describe-with.ts';
import { podmanAnswers } from '../../../src/host/podman/podman-api.ts';

const host = process.env['CONTAINER_HOST'] ?? '';
/** Path of the API socket; empty without podman. */
export const PODMAN_SOCKET =
  host.startsWith('unix://') && (await podmanAnswers(host.slice('unix://'.length))) ? host.slice('unix://'.length) : '';

/** First arguments of the `podman` command, so that it acts on the same podman as the tests. */
export const PODMAN: readonly string[] = ['--remote', '--url', `unix://${PODMAN_SOCKET}`];

/** A `toolboxes.toml` with the real llama-server, built by the set-up. */
export const GGUF_TOOLBOX = '[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\n';

/** What the set-up builds the toolbox images on, so that building them again takes its layers. */
export const BASE_IMAGE = 'localhost/svc-base:forky';
export const SPEECH_BASE_IMAGE = 'localhost/svc-base-certificates:forky';

/** The image of both providers for speech, which `scripts/test-podman.sh speech` builds. */
export const SPEECH_IMAGE = 'localhost/svc-test-speech-cpu:v1';

/** The runtimes' own test image. */
export const WORKLOAD_IMAGE = 'localhost/svc-test-workload:v1';

const REASON = 'no podman answers at CONTAINER_HOST; run: eval "$(scripts/test-podman.sh)"';

export function describeWithPodman(name: string, suite: () => void): void {
  describeWith({ isThere: PODMAN_SOCKET !== '', word: 'podman', what: 'has podman', reason: REASON }, name, suite);
}

/** Names the process whose suite has the slots of this podman. */
const OWNER = join(dirname(PODMAN_SOCKET), 'slots.pid');
/** Longer than all of these suites together. */
const WAIT_MS = 3_600_000;

/**
 * The same for suites of whole services. Their containers are called after their slots, so of two services with a slot
 * "primary" one would wait for the other: one suite at a time runs.
 */
export function describeWithPodmanSlots(name: string, suite: () => void): void {
  describeWithPodman(name, () => {
    beforeAll(async () => {
      while (!isOwner()) await pause(200);
    }, WAIT_MS);
    suite();
    // After the hooks of the suite, which remove its containers.
    afterAll(() => {
      if (ownerText() === String(process.pid)) rmSync(OWNER, { force: true });
    });
  });
}

/** Makes this process the owner, unless another one that runs is it. */
function isOwner(): boolean {
  try {
    writeFileSync(OWNER, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    const pid = Number(ownerText());
    // An owner that has just begun has written nothing yet.
    if (pid > 0 && pid !== process.pid && !isRunning(pid)) rmSync(OWNER, { force: true });
    return pid === process.pid;
  }
}

function ownerText(): string {
  try {
    return readFileSync(OWNER, 'utf8');
  } catch {
    return '';
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
