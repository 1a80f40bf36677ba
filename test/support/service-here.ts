/** The whole service in the process of the test, for plain processes as workloads: with other providers, and with a recording in the place of the hardware. */
import path from 'node:path';
import { createService, type Service } from '../../src/main.ts';
import { createJsonLog } from '../../src/platform/log.ts';
import type { ProviderRegistry } from '../../src/providers/provider.ts';
import { parseSettings } from '../../src/schema/settings/settings.ts';
import { freePort } from './free-port.ts';
import { recordingFile, type RecordedMachine } from './hardware/recorded-machines.ts';

export interface ServiceHere {
  /** Has `config`, `models` and `bin`, which is first on the PATH; the state is put there too. */
  readonly dir: string;
  readonly providers: ProviderRegistry;
  readonly machine?: RecordedMachine | undefined;
}

export async function startServiceHere({ dir, providers, machine }: ServiceHere): Promise<Service> {
  const port = await freePort();
  const firstPort = 20_000 + (port % 60) * 200;
  const variables = {
    SVC_RUNTIME: 'process',
    SVC_LISTEN: `127.0.0.1:${port}`,
    SVC_ON_EXIT: 'stop',
    SVC_CONFIG_DIR: path.join(dir, 'config'),
    SVC_STATE_DIR: path.join(dir, 'state'),
    SVC_MODELS_DIR: path.join(dir, 'models'),
    SVC_PORT_RANGE: `${firstPort}-${firstPort + 99}`,
    SVC_STOP_DELAY: '0s',
    ...(machine === undefined ? {} : { SVC_HARDWARE_FILE: recordingFile(machine) }),
  };
  const parsed = parseSettings(variables);
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const started = await createService({
    settings: parsed.settings,
    version: 'test',
    log: createJsonLog('error'),
    env: { ...variables, PATH: `${path.join(dir, 'bin')}:${path.dirname(process.execPath)}` },
    toolboxManifest: 'manifests/toolboxes.toml',
    providers,
  });
  if (!started.ok) throw new Error(started.failure.message);
  return started.value;
}
