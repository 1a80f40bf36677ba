/** The proxy variables that pods get from the gateway's own environment. Pure. */

export type ProxyVariables = Readonly<Partial<Record<'HTTP_PROXY' | 'HTTPS_PROXY' | 'NO_PROXY', string>>>;

export interface PodProxy {
  readonly variables: ProxyVariables;
  /** Messages without the values of the variables. */
  readonly problems: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;
type Part = Readonly<Record<string, unknown>>;

/** Reached without a proxy: the pod itself, and Services. */
const DIRECT = ['localhost', '127.0.0.1', '::1', '.svc', '.cluster.local'] as const;

/** Accepts either case. A URL with credentials is not passed on: everyone who may read pods would see it. */
export function parsePodProxy(env: Env, secret: string | undefined): PodProxy {
  const valueOf = (name: string): string | undefined => env[name.toLowerCase()] || env[name] || undefined;
  const urls = (['HTTP_PROXY', 'HTTPS_PROXY'] as const).flatMap((name) => {
    const value = valueOf(name);
    return value === undefined || secret !== undefined ? [] : [{ name, value }];
  });
  const hasCredentials = ({ value }: { readonly value: string }): boolean => value.includes('@');
  const passed = urls.filter((url) => !hasCredentials(url));
  const isUsed = passed.length > 0 || secret !== undefined;
  const others = valueOf('NO_PROXY')?.split(/[\s,]+/) ?? [];
  const direct = new Set([...others, ...DIRECT, env['KUBERNETES_SERVICE_HOST'] ?? ''].filter((entry) => entry !== ''));
  return {
    variables: {
      ...Object.fromEntries(passed.map(({ name, value }) => [name, value])),
      ...(isUsed ? { NO_PROXY: [...direct].join(',') } : {}),
    },
    problems: urls
      .filter(hasCredentials)
      .map(
        ({ name }) =>
          `The URL of "${name}" contains credentials, so the pods of slots do not get it: put it into a Secret under the key "${name}", and name the Secret in "SVC_POD_PROXY_SECRET"`,
      ),
  };
}

/** Entries for a container's `env`, in both cases, since programs differ. Variables of the slot stay as they are. */
export function proxyEntries(variables: ProxyVariables, secret: string | undefined, taken: readonly string[]): readonly Part[] {
  const names = new Set(taken.map((name) => name.toUpperCase()));
  const fromSecret = secret === undefined ? [] : ['HTTP_PROXY', 'HTTPS_PROXY'];
  const entries = [
    ...fromSecret.map((name) => ({ name, source: { valueFrom: { secretKeyRef: { name: secret, key: name, optional: true } } } })),
    ...Object.entries(variables).map(([name, value]) => ({ name, source: { value: value.replaceAll('$', '$$$$') } })),
  ];
  return entries
    .filter(({ name }) => !names.has(name))
    .flatMap(({ name, source }) => [
      { name, ...source },
      { name: name.toLowerCase(), ...source },
    ]);
}
