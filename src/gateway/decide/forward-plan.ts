/** Where a request is forwarded, as the provider of its slot decides. Pure. */
import type { Endpoint, InferPlan, InferRequest, Provider } from '../../providers/provider.ts';
import type { RoutedSlot } from '../../reconciler/board.ts';
import type { ErrorCode } from '../../schema/words/error-codes.ts';

export type ForwardPlan =
  | Exclude<InferPlan, { kind: 'refuse' }>
  | { readonly kind: 'refuse'; readonly code: ErrorCode; readonly message: string; readonly param: string | null };

/** A provider that throws fails the request and nothing else: parked requests are routed while the board is published, for all slots. */
export function planForward(
  provider: Pick<Provider, 'infer'> | undefined,
  request: InferRequest,
  { spec, capabilities, model }: Pick<RoutedSlot, 'spec' | 'capabilities' | 'model'>,
): ForwardPlan {
  const unsupported = { kind: 'refuse', code: 'model.unsupported', param: 'model' } as const;
  if (provider === undefined) return { ...unsupported, message: `Use another model: this build cannot serve provider "${spec.provider}"` };
  try {
    const plan = provider.infer(request, capabilities, { spec, model });
    return plan.kind === 'refuse' ? { ...unsupported, message: plan.message } : plan;
  } catch (error) {
    const message = `Report this as a bug of provider "${spec.provider}": it cannot say where the request goes: ${String(error)}`;
    return { kind: 'refuse', code: 'server.internal', message, param: null };
  }
}

/** The value of `Host`. */
export function authorityOf({ host, port }: Endpoint): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
