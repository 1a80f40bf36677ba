/** The tokens of a service in a cluster, in their Secret, with the rights of a kubeconfig. It needs no running service, and so creates the first token. */
import { createTokenManager, type TokenManager } from '../../auth/manage-tokens.ts';
import type { SharedText, SharedTokenText } from '../../auth/ports.ts';
import { createSharedTokenStore } from '../../auth/shared-token-store.ts';
import { createKubeApi } from '../../cluster/client/api-client.ts';
import { createTokenRequests } from '../../cluster/token-secret.ts';
import { SettingsSchema } from '../../schema/settings/settings.ts';
import type { Cli } from '../cli.ts';
import { CliFailure, usageFailure } from '../output/exit-codes.ts';
import { readVersion } from '../read-version.ts';
import type { ServiceOptions } from './service-options.ts';

export interface TokenSecretOptions extends ServiceOptions {
  /** Default: `SVC_TOKENS_SECRET`, then its default. */
  readonly secret?: string | undefined;
}

const READ_TIMEOUT_MS = 15_000;

export const SECRET_HINT =
  'It needs the rights to get and to patch the Secret, whose name --secret changes; with the token of an administrator in SVCCTL_TOKEN, it asks the service instead';

/** Reads the Secret. Fails with a `CliFailure`. */
export async function openTokenSecret(options: TokenSecretOptions, { env, now, terminal }: Cli): Promise<TokenManager> {
  const set = (key: string): string | undefined => (env[key] === '' ? undefined : env[key]);
  const name = SettingsSchema.shape.SVC_TOKENS_SECRET.safeParse(options.secret ?? set('SVC_TOKENS_SECRET'));
  if (!name.success) throw usageFailure('Check --secret and SVC_TOKENS_SECRET: this is no name of a Secret');
  const api = await createKubeApi({
    env,
    context: options.context ?? set('SVCCTL_CONTEXT'),
    kubeconfigPath: options.kubeconfig,
    namespace: options.namespace ?? set('SVCCTL_NAMESPACE'),
    version: readVersion(),
  });
  if (!api.ok) throw new CliFailure(api.failure.message, { hint: 'List the contexts with "kubectl config get-contexts"' });
  const requests = createTokenRequests(api.value, name.data);
  let latest: SharedText | undefined;
  const shared: SharedTokenText = {
    ...requests,
    copy: () => latest,
    async read(signal) {
      const answer = await requests.read(signal);
      if (answer.ok) latest = answer.value;
      return answer;
    },
    async write(before, text, signal) {
      const written = await requests.write(before, text, signal);
      return written.ok ? { ok: true, value: undefined } : written;
    },
  };
  const first = await shared.read(AbortSignal.timeout(READ_TIMEOUT_MS));
  if (!first.ok) throw new CliFailure(`Could not read ${shared.name}: ${first.failure.message}`, { hint: SECRET_HINT });
  const log = { warn: (_fields: unknown, message: string) => void terminal.note(message) };
  return createTokenManager({ store: createSharedTokenStore({ shared, log }), lastUses: () => new Map(), wallNow: now });
}
