/** The answers of the open routes of `/api` as schemas. */
import { z } from 'zod';
import { ErrorAnswer } from '../error-schema.ts';

const HealthFacts = z.object({
  version: z.string(),
  uptime_seconds: z.int().min(0),
  last_pass_age_seconds: z.int().describe('Time since the reconcile loop finished a pass'),
});

export const Healthy = HealthFacts.extend({ status: z.literal('ok') });
export const Failing = HealthFacts.extend({ status: z.literal('failing'), ...ErrorAnswer.shape });
export const Ready = z.object({ status: z.literal('ok') });
export const Starting = z.object({ status: z.literal('starting'), ...ErrorAnswer.shape });
export const Features = z.object({ features: z.record(z.string(), z.boolean()) });

export const PublicUrls = z.object({
  base_url: z.url(),
  openai_base_url: z.url(),
  api_url: z.url(),
  dashboard_url: z.url(),
  chat_url: z.url(),
  source: z.enum(['host', 'setting']).describe('Derived from the header "Host", or from "SVC_PUBLIC_URL"'),
});

export const InstallState = z.object({
  complete: z.boolean(),
  steps: z.array(z.object({ id: z.string(), done: z.boolean(), hint: z.string() })),
});

export const AuthStatus = z.object({
  auth_enabled: z.boolean(),
  mode: z.enum(['off', 'basic']),
  methods: z.array(z.enum(['bearer', 'forwarded-email'])),
});

export const Login = z.object({ auth_enabled: z.boolean(), message: z.string() });
