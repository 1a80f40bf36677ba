/**
 * Settings for `--checkout`: everything in `.svc` of the checkout, models as plain processes, nothing left behind, and only this machine can reach it. The
 * environment takes precedence.
 */
import path from 'node:path';
import type { Environment } from '../connect/service-options.ts';

export const CHECKOUT = path.resolve(import.meta.dirname, '../../..');

/** The toolbox images that are shipped. */
export const TOOLBOX_MANIFEST = path.join(CHECKOUT, 'manifests/toolboxes.toml');

export function withCheckoutSettings(env: Environment): Environment {
  const root = path.join(CHECKOUT, '.svc');
  return {
    SVC_LISTEN: '127.0.0.1:8080',
    SVC_CONFIG_DIR: path.join(root, 'config'),
    SVC_STATE_DIR: path.join(root, 'state'),
    SVC_RUNTIME: 'process',
    SVC_ON_EXIT: 'stop',
    ...env,
  };
}
