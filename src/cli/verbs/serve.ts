/** `svcctl serve`: runs the service, with settings from the environment, until a signal stops it. */
import path from 'node:path';
import { describeExposure } from '../../api/server/decide/host-names.ts';
import { createService, type Service } from '../../main.ts';
import { createJsonLog, createPlainLog } from '../../platform/log.ts';
import { PROVIDERS } from '../../providers/registry.ts';
import { parseSettings, type Settings } from '../../schema/settings/settings.ts';
import { CHECKOUT, TOOLBOX_MANIFEST, withCheckoutSettings } from '../checkout/checkout-settings.ts';
import { prepareCheckout } from '../checkout/prepare-checkout.ts';
import type { Cli } from '../cli.ts';
import { EXIT, type ExitCode } from '../output/exit-codes.ts';
import { readVersion } from '../read-version.ts';

export async function runServe(_cli: Cli, options: { readonly checkout?: boolean }): Promise<ExitCode> {
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
  const version = readVersion();
  const prepared = checkout ? await prepareCheckout(settings) : undefined;
  if (prepared?.ok === false) return refuse(prepared.failure.message);
  ignoreOutputErrors();
  const stop = stopSignal();
  const started = await createService({
    settings,
    version,
    log,
    env: process.env,
    toolboxManifest: TOOLBOX_MANIFEST,
    dashboard: path.join(CHECKOUT, 'dashboard/dist'),
    providers: PROVIDERS,
  });
  if (!started.ok) return refuse(started.failure.message);
  const service = started.value;
  const inCluster = service.runtime === 'kube';
  const exposure = describeExposure({ isLocal: service.isLocal, authEnabled: settings.SVC_AUTH_ENABLED, inCluster });
  const warnings = [exposure, inCluster ? undefined : describeRecording(settings)].filter((warning) => warning !== undefined);
  if (checkout) process.stdout.write(welcome(service, settings, version, warnings));
  else {
    log.info({ urls: service.urls, runtime: service.runtime, version }, 'Listening');
    for (const warning of warnings) log.warn({ urls: service.urls }, warning);
  }
  await stop;
  if (checkout) process.stdout.write('\n  Stopping\n');
  await service.stop();
  log.info({}, 'Stopped');
  return EXIT.done;
}

function refuse(message: string): ExitCode {
  process.stderr.write(`svcctl: ${message}\n`);
  return EXIT.failed;
}

/**
 * Resolves at the first signal. A second one ends the process at once; running slots stay. A terminal that is closed sends SIGHUP, perhaps several times, as
 * the shell and npm pass it on; so a repeated one does not count.
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
    process.on('SIGHUP', () => {
      if (!stopping) onSignal();
    });
  });
}

/** For other verbs, output that nobody reads is the end. A service whose terminal was closed still has to stop its slots in order. */
function ignoreOutputErrors(): void {
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => undefined);
}

function describeRecording({ SVC_HARDWARE_FILE: file }: Settings): string | undefined {
  if (file === undefined) return undefined;
  return `The hardware is that of the recording "${file}", not that of this machine, because SVC_HARDWARE_FILE is set`;
}

function welcome(service: Service, settings: Settings, version: string, warnings: readonly string[]): string {
  const file = path.relative(process.cwd(), path.join(settings.SVC_CONFIG_DIR, 'slots', 'primary.toml'));
  const body = '{"messages":[{"role":"user","content":"Hello"}]}';
  const where = service.urls.length === 1 ? ` ${service.url}` : `:\n${service.urls.map((url) => `    ${url}`).join('\n')}\n `;
  const warning = warnings.map((text) => `\n  Warning: ${text}\n`).join('');
  return `
  svc ${version} is listening on${where} (runtime "${service.runtime}")
${warning}
  Ask     curl ${service.url}/v1/chat/completions -H 'content-type: application/json' -d '${body}'
  Look    npm run --silent svcctl -- get slots --server ${service.url}
  Change  edit ${file}: set default = "demo-owl", save, and ask again
  Stop    Ctrl-C

`;
}
