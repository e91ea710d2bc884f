/** REST catalogs and their stores, believed only as far as a catalog is to be believed. */
package sqe.bridge.catalog.rest;
