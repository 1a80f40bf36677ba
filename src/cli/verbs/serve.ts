/** `svcctl serve`: runs the service until a signal. `--checkout` first writes example slots and demo models. */
import { execFile } from 'node:child_process';
import { existsSync, fstatSync, writeFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DestinationStream } from 'pino';
import { describeExposure } from '../../api/server/decide/host-names.ts';
import { describeForgery } from '../../auth/decide/decide-access.ts';
import { createService, type Service } from '../../main.ts';
import { loadDemoToolbox } from '../../models/model-sources.ts';
import { messageOf } from '../../platform/error-text.ts';
import { sleep } from '../../platform/clock.ts';
import { createJsonLog, createPlainLog, limitRepeats } from '../../platform/log.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import { parseSettings, type Settings } from '../../schema/settings/settings.ts';
import { CHECKOUT, readVersion, TOOLBOX_MANIFEST, withCheckoutSettings } from '../installation.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import type { Cli } from '../verb.ts';

/** A longer first pass, as on a host whose podman does not answer, does not delay the start of other units. */
const READY_WITHIN_MS = 30_000;
const READY_POLL_MS = 50;
const DASHBOARD = path.join(CHECKOUT, 'dashboard/dist');

export async function runServe(_cli: Cli, options: { readonly checkout?: boolean }): Promise<ExitCode> {
  const checkout = options.checkout === true;
  const parsed = parseSettings(checkout ? withCheckoutSettings(process.env) : process.env);
  if (!parsed.ok) {
    for (const problem of parsed.problems) refuse(problem);
    return EXIT.usage;
  }
  const { settings } = parsed;
  const isForPeople = checkout || process.stdout.isTTY;
  const every = isForPeople
    ? createPlainLog(settings.SVC_LOG_LEVEL, (line) => process.stdout.write(`${line}\n`), !checkout)
    : createJsonLog(settings.SVC_LOG_LEVEL, leadsToJournal(process.env, 1) ? withPriority : undefined);
  const log = limitRepeats(every, () => performance.now());
  nameProcess();
  const version = readVersion();
  const prepared = checkout ? await prepareCheckout(settings) : undefined;
  if (prepared?.ok === false) return refuse(prepared.failure.message);
  // Errors of the output end other verbs; a service whose terminal was closed still has to stop its slots.
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => undefined);
  const stop = stopSignal();
  const started = await createService({
    settings,
    version,
    log,
    env: process.env,
    toolboxManifest: TOOLBOX_MANIFEST,
    dashboard: DASHBOARD,
    providers: PROVIDERS,
  });
  if (!started.ok) return refuse(started.failure.message);
  const service = started.value;
  const inCluster = service.runtime === 'kube';
  const exposure = describeExposure({
    isLocal: service.isLocal,
    modelsOnly: settings.SVC_MANAGEMENT_LISTEN !== undefined,
    authEnabled: settings.SVC_AUTH_ENABLED,
    inCluster,
  });
  // The chart of a cluster trusts no proxy without a secret.
  const ofHost = inCluster ? [] : warningsOf(settings);
  const warnings = [exposure, ...ofHost].filter((warning) => warning !== undefined);
  if (checkout) process.stdout.write(welcome(service, settings, version, warnings));
  else {
    const { urls, managementUrl, runtime } = service;
    const management = settings.SVC_MANAGEMENT_LISTEN === undefined ? {} : { managementUrl };
    log.info({ urls, ...management, runtime, version }, 'Listening');
    for (const warning of warnings) log.warn({ urls: service.urls }, warning);
  }
  void notifySystemd(service);
  await stop;
  if (checkout) process.stdout.write('\n  Stopping\n');
  await service.stop();
  log.info({}, 'Stopped');
  setTimeout(() => process.exit(EXIT.done), LEFT_MS).unref();
  return EXIT.done;
}

/** A collector of traces may still hold a request, and its package cannot be told to give up. Nothing else is left. */
const LEFT_MS = 500;

function refuse(message: string): ExitCode {
  process.stderr.write(`${leadsToJournal(process.env, 2) ? '<3>' : ''}svcctl: ${message}\n`);
  return EXIT.failed;
}

/** Whether a descriptor leads to systemd's journal, which takes the priority of a line from a prefix such as `<4>`. */
export function leadsToJournal({ JOURNAL_STREAM: journal }: Readonly<Record<string, string | undefined>>, descriptor: number): boolean {
  if (journal === undefined) return false;
  const { dev, ino } = fstatSync(descriptor);
  return journal === `${dev}:${ino}`;
}

/** Priorities of syslog, by the numbers of pino's levels. */
const PRIORITIES: Readonly<Record<number, number>> = { 50: 3, 40: 4, 30: 6 };
const DEBUG_PRIORITY = 7;

export function withPriority(output: DestinationStream): DestinationStream {
  const journal = {
    [Symbol.for('pino.metadata')]: true,
    // Set by pino before each line.
    lastLevel: 0,
    write(line: string) {
      output.write(`<${PRIORITIES[journal.lastLevel] ?? DEBUG_PRIORITY}>${line}`);
    },
  };
  return journal;
}

/** For `ps` and `top`, which would say "node". The command line, by which processes are found, stays as it is. */
function nameProcess(): void {
  try {
    writeFileSync('/proc/self/comm', 'svc');
  } catch {
    // Only Linux has it.
  }
}

/**
 * Tells systemd that requests can be answered, if it has started the service with `Type=notify`. A program of systemd
 * sends the message, because Node has no datagram sockets of the Unix domain.
 */
async function notifySystemd({ url, runtime }: Service): Promise<void> {
  if (process.env['NOTIFY_SOCKET'] === undefined) return;
  const signal = AbortSignal.timeout(READY_WITHIN_MS);
  const isReady = async (): Promise<boolean> =>
    fetch(`${url}/api/health/ready`, { signal }).then(
      ({ ok: isOk }) => isOk,
      () => false,
    );
  while (!signal.aborted && !(await isReady())) await sleep(READY_POLL_MS);
  const args = ['--ready', `--status=Answers at ${url}, runtime "${runtime}"`];
  execFile('systemd-notify', args, () => undefined);
}

/**
 * Resolves at the first signal. A second SIGINT or SIGTERM ends the process at once, and running slots stay. A closed
 * terminal may send SIGHUP several times, because the shell and npm forward it, so a repeated SIGHUP is ignored.
 */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = () => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve();
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
    const stopOnce = () => {
      if (!stopping) onSignal();
    };
    process.on('SIGHUP', stopOnce);
    // A parent that started it with a channel has ended, as `svcctl upgrade engine` may.
    process.on('disconnect', stopOnce);
  });
}

function warningsOf(settings: Settings): readonly (string | undefined)[] {
  const forgery = describeForgery(settings);
  const file = settings.SVC_HARDWARE_FILE;
  const recording = `SVC_HARDWARE_FILE is set: the service uses the hardware in "${file}", not the hardware of this machine`;
  return [forgery && `${forgery.found}. ${forgery.fix}`, file === undefined ? undefined : recording];
}

function welcome(service: Service, settings: Settings, version: string, warnings: readonly string[]): string {
  const relative = path.relative(process.cwd(), settings.SVC_CONFIG_DIR);
  const config = relative.startsWith('..') ? settings.SVC_CONFIG_DIR : relative;
  const svcctl = 'npm run --silent svcctl --';
  const page = existsSync(DASHBOARD) ? `\n  Open the page     ${service.managementUrl}/` : '';
  // The other commands need a token then; this one writes to the token file itself.
  const token = settings.SVC_AUTH_ENABLED
    ? `\n  Create a token    export SVC_TOKEN=$(SVC_CONFIG_DIR='${config}' ${svcctl} token create --label me --scope admin)`
    : '';
  const credential = settings.SVC_AUTH_ENABLED ? ' -H "authorization: Bearer $SVC_TOKEN"' : '';
  const body = '{"messages":[{"role":"user","content":"Hello"}]}';
  const where = service.urls.length === 1 ? ` ${service.url}` : `:\n${service.urls.map((url) => `    ${url}`).join('\n')}\n `;
  const warning = warnings.map((text) => `\n  Warning: ${text}\n`).join('');
  return `
  svc ${version} is listening on${where} (runtime "${service.runtime}")
${warning}${page}${token}
  Send a prompt     curl ${service.url}/v1/chat/completions${credential} -H 'content-type: application/json' -d '${body}'
  List the slots    ${svcctl} get slots --server ${service.managementUrl}
  Change the model  edit ${path.join(config, 'slots', 'primary.toml')}: set default = "demo-owl" and save
  Stop              Ctrl-C

`;
}

/** Written by the first `npm start`. */
const EXAMPLE_SLOTS: Readonly<Record<string, string>> = {
  primary: `# The slot "primary" answers chat requests. Changes to this file take effect when it is saved.
backend = "cpu"

[model]
# Catalogue id, or path of a GGUF file in the model store.
# The other demo model is "demo-owl".
default = "demo-fox"
`,
  embed: `# The slot "embed" computes embeddings.
backend = "cpu"

[model]
default = "demo-embed"
`,
  stt: `# The slot "stt" transcribes speech. The first request loads it and downloads its engine once (about 11 MB).
load = "on-demand"

[model]
# A demo model without trained weights: it transcribes every recording as "This is the demo."
# A real model: "moonshine-tiny-en"
default = "demo-listener"
aliases = ["whisper-1"]
`,
  tts: `# The slot "tts" turns text into speech. The first request loads it.
load = "on-demand"

[model]
# A demo model without trained weights: it plays a tone for each letter.
# A real model: "kokoro-multi-lang-v1.0"
default = "demo-speaker"
aliases = ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
`,
  img: `# The slot "img" generates images. It is off, because images need ComfyUI, a GPU and a model of 4.3 GB:
# put a program "comfyui" that starts its main.py on the PATH, see "svcctl explain img", and set "enabled" to true.
enabled = false
load = "on-demand"

[model]
default = "sd-1.5-pruned-emaonly"
`,
};

/** Writes example slots into a new directory, and missing demo models. Never overwrites a file. */
export async function prepareCheckout({ SVC_CONFIG_DIR: configDir, SVC_MODELS_DIR: modelsDir }: Settings): Promise<Result<void>> {
  try {
    const slotsDir = path.join(configDir, 'slots');
    // Undefined if the directory exists: the user may have deleted the example slots.
    if ((await mkdir(slotsDir, { recursive: true })) !== undefined) {
      for (const [name, text] of Object.entries(EXAMPLE_SLOTS)) await writeFile(path.join(slotsDir, `${name}.toml`), text, { flag: 'wx' });
    }
    await mkdir(modelsDir, { recursive: true });
    const { writeDemoModels, writeDemoSpeech } = await loadDemoToolbox();
    await writeDemoModels(modelsDir);
    await writeDemoSpeech(modelsDir);
    return ok(undefined);
  } catch (error) {
    const message = `Could not write to "${configDir}" or "${modelsDir}": ${messageOf(error)}; make them writable, or set SVC_CONFIG_DIR and SVC_STATE_DIR`;
    return fail('stalled', 'SettingUnusable', message);
  }
}
