/** `svcctl serve`: settings from the environment, the service until a signal, and what a person needs to go on. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createService, type Service } from '../../main.ts';
import { ok } from '../../schema/failure.ts';
import { parseSettings, type Settings } from '../../schema/settings.ts';
import { CHECKOUT, withCheckoutSettings } from '../checkout/checkout-settings.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { firstRun } from '../checkout/first-run.ts';
import { createJsonLog, createPlainLog, type Log } from '../../platform/log.ts';

export interface ServeOptions {
  readonly checkout?: boolean;
}

export async function runServe(options: ServeOptions): Promise<ExitCode> {
  const checkout = options.checkout === true;
  const parsed = parseSettings(checkout ? withCheckoutSettings(process.env) : process.env);
  if (!parsed.ok) {
    for (const problem of parsed.problems) process.stderr.write(`svcctl: ${problem}\n`);
    return EXIT.usage;
  }
  const { settings } = parsed;
  const log = checkout
    ? createPlainLog(settings.SVC_LOG_LEVEL, (line) => process.stdout.write(`${line}\n`))
    : createJsonLog(settings.SVC_LOG_LEVEL);
  const version = await readVersion();
  const laidDown = checkout ? await firstRun({ configDir: settings.SVC_CONFIG_DIR, modelsDir: settings.SVC_MODELS_DIR }) : ok(undefined);
  if (!laidDown.ok) return refuse(laidDown.failure.message);
  const stop = stopSignal();
  const started = await createService({
    settings,
    version,
    log,
    env: process.env,
    toolboxManifest: path.join(CHECKOUT, 'toolboxes/manifest.json'),
  });
  if (!started.ok) return refuse(started.failure.message);
  const service = started.value;
  if (checkout) process.stdout.write(welcome(service, settings, version));
  else log.info({ url: service.url, runtime: service.runtime, version }, 'Listening');
  await stop;
  await stopService(service, checkout, log);
  return EXIT.done;
}

function refuse(message: string): ExitCode {
  process.stderr.write(`svcctl: ${message}\n`);
  return EXIT.failed;
}

/** Resolves at the first signal; a second one ends the process as it is, and running slots stay. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = () => {
      if (asked) process.exit(1);
      asked = true;
      resolve();
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}

async function stopService(service: Service, checkout: boolean, log: Log): Promise<void> {
  if (checkout) process.stdout.write('\n  Stopping\n');
  await service.stop();
  log.info({}, 'Stopped');
}

async function readVersion(): Promise<string> {
  const text = await readFile(path.join(CHECKOUT, 'package.json'), 'utf8');
  const version = /"version": "([^"]+)"/.exec(text)?.[1];
  return version ?? 'unknown';
}

function welcome(service: Service, settings: Settings, version: string): string {
  const file = path.relative(process.cwd(), path.join(settings.SVC_CONFIG_DIR, 'slots', 'primary.toml'));
  const body = '{"messages":[{"role":"user","content":"Hello"}]}';
  return `
  svc ${version} listens on ${service.url} (runtime "${service.runtime}")

  Ask     curl ${service.url}/v1/chat/completions -H 'content-type: application/json' -d '${body}'
  Look    npm run --silent svcctl -- get slots --server ${service.url}
  Change  edit ${file}: set default = "demo-owl", save, and ask again
  Stop    Ctrl-C

`;
}
